#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/model.hpp>
#include <xgrad/nn/linear.hpp>
#include <xgrad/optim/adam.hpp>

#include "helpers/catch.hpp"
#include "helpers/errors.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

namespace {

struct Net {
  nn::Linear hidden;
  nn::Linear out;
  explicit Net(std::size_t width = 3) : hidden(2, width), out(width, 1) {}
  Tensor operator()(const Tensor& x) const { return out(dropout(tanh(hidden(x)), 0.2)); }
  static void visit(auto& self, auto&& v) {
    v("hidden", self.hidden);
    v("out", self.out);
  }
};

struct Run {
  Net net;
  optim::AdamW optimizer;
  explicit Run(std::size_t width = 3)
      : net(width), optimizer(optim::decay_matrices(nn::parameters(net), {.lr = 0.05})) {}

  double step() {
    const Tensor x = randn({8, 2});
    const Tensor loss = mse_loss(net(x), x.sum({1}, true));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.item();
  }
  std::vector<double> steps(int n) {
    std::vector<double> losses;
    for (int i = 0; i < n; ++i)
      losses.push_back(step());
    return losses;
  }
};

std::vector<float> values_of(const Tensor& x) {
  return {x.data<float>(), x.data<float>() + x.numel()};
}

/// All numbers that a run consists of.
std::vector<float> everything(const Run& run) {
  std::vector<float> all;
  const auto add = [&](const auto& named) {
    for (const auto& [name, x] : named)
      for (const float v : values_of(x))
        all.push_back(v);
  };
  add(nn::state_dict(run.net));
  const optim::OptimizerState state = run.optimizer.state_dict();
  add(state.tensors);
  for (const auto& [name, number] : state.numbers)
    all.push_back(static_cast<float>(number));
  return all;
}

void save(const std::string& path, const Run& run) {
  io::Checkpoint checkpoint = io::take_checkpoint(run.net, run.optimizer, 4, default_generator());
  checkpoint.config = R"({"width": 3})";
  checkpoint.characters = data::Characters::of(U"\n é☃");
  io::save_checkpoint(path, checkpoint);
}

/// A file with a checkpoint of a run of width 3 after four steps.
struct SavedRun {
  TemporaryFolder folder;
  std::string path = folder / "checkpoint.safetensors";
  Run run;
  SavedRun() {
    run.steps(4);
    save(path, run);
  }
  /// The file with a change made to it.
  template <class F>
  void change(F&& f) {
    io::TensorFile file = io::load_safetensors(path);
    f(file);
    io::save_safetensors(path, file);
  }
};

void check_not_loaded(const std::string& path, const std::string& fragment) {
  CHECK_THROWS_AS(io::load_checkpoint(path), FileError);
  CHECK_THROWS_WITH(io::load_checkpoint(path),
                    StartsWith(path + ": ") && ContainsSubstring(fragment));
}

/// Restoring fails with these words, and changes nothing.
void check_not_restored(const std::string& path, Run& run,
                        const std::vector<std::string>& fragments) {
  const io::Checkpoint checkpoint = io::load_checkpoint(path);
  const std::vector<float> before = everything(run);
  const std::string generator = default_generator().state();
  const std::string message = message_of<FileError>(
      [&] { io::restore(checkpoint, run.net, run.optimizer, default_generator()); });
  CHECK_THAT(message, StartsWith(path + ": "));
  check_contains(message, fragments);
  CHECK(everything(run) == before);
  CHECK(default_generator().state() == generator);
}

}  // namespace

TEST_CASE("checkpoint: a restored run goes on as if it had never stopped") {
  manual_seed(1);
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.safetensors";
  Run run;
  run.steps(4);
  save(path, run);
  const std::vector<double> expected = run.steps(5);

  manual_seed(2);
  Run other;
  other.steps(1);
  const io::Checkpoint checkpoint = io::load_checkpoint(path);
  CHECK(checkpoint.step == 4);
  CHECK(checkpoint.config == R"({"width": 3})");
  CHECK(checkpoint.characters.list() == U"\n é☃");
  io::restore(checkpoint, other.net, other.optimizer, default_generator());
  CHECK(other.steps(5) == expected);
  CHECK(everything(other) == everything(run));
}

TEST_CASE("checkpoint: names and values in the file") {
  SavedRun saved;
  const io::TensorFile file = io::load_safetensors(saved.path);
  CHECK(file.tensors.size() == 12);
  for (const auto& [name, x] : nn::state_dict(saved.run.net)) {
    INFO(name);
    CHECK(values_of(file.tensors.at(name)) == values_of(x));
    CHECK(file.tensors.at("optimizer.exp_avg." + name).shape() == x.shape());
    CHECK(file.tensors.at("optimizer.exp_avg_sq." + name).shape() == x.shape());
  }
  CHECK(file.metadata.at("step") == "4");
  CHECK(file.metadata.at("characters") == "\n é☃");
  // The optimizer has matrices first: its parameter 1 is the model's third.
  const optim::OptimizerState state = saved.run.optimizer.state_dict();
  const auto second =
      std::find_if(state.tensors.begin(), state.tensors.end(),
                   [](const auto& entry) { return entry.first == "state.1.exp_avg"; });
  REQUIRE(second != state.tensors.end());
  CHECK(values_of(file.tensors.at("optimizer.exp_avg.out.weight")) == values_of(second->second));
}

TEST_CASE("checkpoint: what is not a checkpoint") {
  SavedRun saved;
  const std::string& path = saved.path;
  const TemporaryFolder folder;
  check_not_loaded(folder / "none", "No such file");
  write_bytes(folder / "text", "First Citizen: before we proceed any further");
  check_not_loaded(folder / "text", "not a safetensors file");
  io::save(saved.run.net, folder / "model");
  check_not_loaded(folder / "model", "not a checkpoint: its metadata has no 'xgrad_checkpoint'");

  const auto changed = [&](const std::string& key, const std::string& value,
                           const std::string& fragment) {
    const std::string before = read_bytes(path);
    saved.change([&](io::TensorFile& file) { file.metadata.at(key) = value; });
    check_not_loaded(path, fragment);
    write_bytes(path, before);
  };
  changed("xgrad_checkpoint", "2", "version '2'");
  changed("step", "-1", "'step' is '-1'");
  changed("step", "4x", "'step' is '4x'");
  changed("characters", "ba", "'characters'");
  changed("characters", "aa", "'characters'");
  changed("optimizer", "{", "'optimizer' is not JSON");
  changed("optimizer", "[]", "'optimizer' is not JSON");
  changed("optimizer", R"({"parameters": [1], "numbers": {}})", "other than a string");
  changed("optimizer", R"({"parameters": [], "numbers": {"a": "b"}})", "other than a number");
  changed("optimizer", R"({"parameters": [], "numbers": {}})", "no parameter that the optimizer");
  for (const char* const key : {"step", "generator", "config", "characters", "optimizer"}) {
    const std::string before = read_bytes(path);
    saved.change([&](io::TensorFile& file) { file.metadata.erase(key); });
    check_not_loaded(path, "its metadata has no '" + std::string(key) + "'");
    write_bytes(path, before);
  }
  saved.change([](io::TensorFile& file) { file.indices["ids"] = Indices({1}); });
  check_not_loaded(path, "I64");
}

TEST_CASE("checkpoint: one that does not fit changes nothing") {
  SavedRun saved;
  const std::string& path = saved.path;
  Run run;
  run.steps(2);

  Run wider(4);
  wider.steps(1);
  check_not_restored(
      path, wider,
      {"does not fit the model", "hidden.weight", "(3, 2)", "(4, 2)", "hidden.bias", "out.weight"});
  const std::string good = read_bytes(path);
  const auto changed = [&](auto&& f, const std::vector<std::string>& fragments) {
    saved.change(f);
    check_not_restored(path, run, fragments);
    write_bytes(path, good);
  };
  changed([](io::TensorFile& file) { file.tensors.erase("out.bias"); }, {"out.bias"});
  changed([](io::TensorFile& file) { file.tensors["extra"] = tensor({1}); }, {"extra"});
  // These are found only after the model has been loaded.
  changed([](io::TensorFile& file) { file.tensors.erase("optimizer.exp_avg.out.bias"); },
          {"exp_avg"});
  changed([](io::TensorFile& file) { file.tensors["optimizer.exp_avg.out.bias"] = zeros({2}); },
          {"exp_avg"});
  changed([](io::TensorFile& file) { file.metadata["generator"] = "?"; }, {"Generator"});
  changed(
      [](io::TensorFile& file) {
        std::string& text = file.metadata["optimizer"];
        const std::size_t at = text.find("\"hidden.weight\",\"out.weight\"");
        REQUIRE(at != std::string::npos);
        text.replace(at, 28, "\"out.weight\",\"hidden.weight\"");
      },
      {"other parameters, or in another order"});
}

TEST_CASE("checkpoint: what cannot be stored") {
  const TemporaryFolder folder;
  Run run;
  const Net stranger;
  CHECK_THROWS_WITH(io::take_checkpoint(stranger, run.optimizer, 0, default_generator()),
                    ContainsSubstring("is not one of the model's"));
  io::Checkpoint checkpoint = io::take_checkpoint(run.net, run.optimizer, 0, default_generator());
  checkpoint.model.emplace_back("optimizer.x", tensor({1}));
  CHECK_THROWS_WITH(io::save_checkpoint(folder / "x", checkpoint),
                    ContainsSubstring("'optimizer.x'"));
  checkpoint.model.pop_back();
  checkpoint.optimizer.tensors.emplace_back("state.9.exp_avg", tensor({1}));
  CHECK_THROWS_WITH(io::save_checkpoint(folder / "x", checkpoint),
                    ContainsSubstring("'state.9.exp_avg' is of none of the 4 parameters"));
  CHECK(folder.count() == 0);
}

TEST_CASE("model files: a model is read back as it was, or not at all") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  const Net net;
  io::save(net, path);
  Net other;
  io::load(other, path);
  const nn::StateDict expected = nn::state_dict(net), read = nn::state_dict(other);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(values_of(read[i].second) == values_of(expected[i].second));

  Net wide(4);
  const std::vector<float> before = values_of(wide.hidden.weight);
  CHECK_THROWS_AS(io::load(wide, path), FileError);
  CHECK_THROWS_WITH(io::load(wide, path), StartsWith(path + ": does not fit the model") &&
                                              ContainsSubstring("hidden.weight") &&
                                              ContainsSubstring("out.weight"));
  CHECK(values_of(wide.hidden.weight) == before);
  io::TensorFile ids;
  ids.indices["ids"] = Indices({1});
  io::save_safetensors(path, ids);
  CHECK_THROWS_WITH(io::load(other, path), ContainsSubstring("ids is I64"));
}
