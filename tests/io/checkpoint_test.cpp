#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/optim/optimizers.hpp>

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

/// With names like those in the optimizer's state.
struct Clash {
  nn::Linear optimizer{1, 1};
  static void visit(auto& self, auto&& v) { v("optimizer", self.optimizer); }
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

/// All numbers of a run.
std::vector<float> everything(const Run& run) {
  std::vector<float> all;
  const auto add = [&](const auto& named) {
    for (const auto& [name, x] : named)
      for (const float v : values_of(x))
        all.push_back(v);
  };
  add(nn::state_dict(run.net));
  const optim::OptimizerState state = run.optimizer.state_dict();
  for (const auto& [step, tensors] : state.parameters) {
    add(tensors);
    all.push_back(static_cast<float>(step.value_or(-1)));
  }
  for (const auto& group : state.groups)
    for (const auto& [name, number] : group.options)
      all.push_back(static_cast<float>(number));
  return all;
}

const io::Json notes = io::JsonObject{{"text", "\n é☃"}, {"width", std::uint64_t{3}}};

void save(const std::string& path, const Run& run) {
  io::save_checkpoint(path, run.net, run.optimizer, {.step = 4, .user = notes});
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
  const std::vector<float> before = everything(run);
  const std::string generator = default_generator().state();
  const std::string message =
      message_of<FileError>([&] { io::restore(path, run.net, run.optimizer); });
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
  const io::Checkpoint checkpoint = io::restore(path, other.net, other.optimizer);
  CHECK(checkpoint.step == 4);
  CHECK(checkpoint.user == notes);
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
  CHECK(file.metadata.at("user") == "{\"text\":\"\\n é☃\",\"width\":3}");
  // The same run gives the same bytes.
  save(saved.folder / "again", saved.run);
  CHECK(read_bytes(saved.folder / "again") == read_bytes(saved.path));
  // The optimizer has matrices first: its parameter 1 is the model's third.
  const optim::OptimizerState state = saved.run.optimizer.state_dict();
  const auto& second = state.parameters.at(1).tensors.at(0);
  REQUIRE(second.first == "exp_avg");
  CHECK(values_of(file.tensors.at("optimizer.exp_avg.out.weight")) == values_of(second.second));
}

TEST_CASE("checkpoint: other files are rejected") {
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
  changed("xgrad_checkpoint", "1", "version '1'; this reads version 2");
  changed("xgrad_checkpoint", "3", "version '3'");
  changed("step", "-1", "'step' is '-1'");
  changed("step", "4x", "'step' is '4x'");
  changed("user", "{", "'user' is not JSON");
  changed("generators", "[]", "'generators' is not a JSON object");
  changed("generators", R"({"default": 1})", "a state that is not a string");
  changed("optimizer", "{", "'optimizer' is not JSON");
  changed("optimizer", "[]", "'optimizer' is not JSON");
  changed("optimizer", R"({"parameters": [1], "numbers": {}})", "that is not a string");
  changed("optimizer", R"({"parameters": [], "numbers": {"a": "b"}})", "a number that is not one");
  changed("optimizer", R"({"parameters": [], "numbers": {}})", "no parameter of the optimizer");
  for (const char* const key : {"step", "generators", "user", "optimizer"}) {
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
  changed([](io::TensorFile& file) { file.metadata["generators"] = R"({"default": "?"})"; },
          {"Generator"});
  changed([](io::TensorFile& file) { file.metadata["generators"] = "{}"; },
          {"only asked for: default"});
  const auto replaced = [](const std::string& from, const std::string& to) {
    return [from, to](io::TensorFile& file) {
      std::string& text = file.metadata["optimizer"];
      const std::size_t at = text.find(from);
      REQUIRE(at != std::string::npos);
      text.replace(at, from.size(), to);
    };
  };
  for (const char* const groups : {"1.0", "3.0", "-1.0", "1e300"})
    changed(replaced("\"param_groups.0.params\":2.0",
                     std::string("\"param_groups.0.params\":") + groups),
            {"its groups do not hold its 4 parameters"});
}

TEST_CASE("checkpoint: the optimizer may have its parameters in another order and other groups") {
  SavedRun saved;
  const std::vector<double> expected = saved.run.steps(5);
  const auto named = [](const Net& net) {
    std::map<std::string, Tensor> map;
    for (const auto& [name, x] : nn::named_parameters(net))
      map.emplace(name, x);
    return map;
  };
  Net net;
  const auto p = named(net);
  optim::AdamW optimizer({{{p.at("out.bias")}, {.weight_decay = 0}},
                          {{p.at("out.weight"), p.at("hidden.weight")}, {}},
                          {{p.at("hidden.bias")}, {}}});
  io::restore(saved.path, net, optimizer);
  std::vector<double> losses;
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({8, 2});
    const Tensor loss = mse_loss(net(x), x.sum({1}, true));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item());
  }
  CHECK(losses == expected);

  const auto refused = [&](optim::Optimizer& other, const std::vector<std::string>& fragments) {
    const optim::OptimizerState before = other.state_dict();
    const auto values = values_of(p.at("out.weight"));
    check_contains(message_of<FileError>([&] { io::restore(saved.path, net, other); }), fragments);
    for (std::size_t g = 0; g < before.groups.size(); ++g)
      CHECK(other.state_dict().groups.at(g).options == before.groups[g].options);
    CHECK(values_of(p.at("out.weight")) == values);
  };
  optim::AdamW together(nn::parameters(net), {});
  refused(together,
          {"hidden.weight, trained with weight_decay 0.01, and hidden.bias, trained with 0",
           "decay_matrices"});
  optim::AdamW fewer({p.at("out.bias"), p.at("hidden.bias")}, {});
  refused(fewer, {"trained only by the checkpoint's: hidden.weight, out.weight"});
  optim::SGD sgd(optim::ParamGroup<optim::SGDOptions>{nn::parameters(net), {.lr = 0.1}}.params,
                 {.lr = 0.1, .momentum = 0.9});
  refused(sgd, {"hidden"});
}

TEST_CASE("checkpoint: generators of the caller's own") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  Run run;
  run.steps(1);
  Generator noise(7), order(8);
  noise.normal();
  io::save_checkpoint(path, run.net, run.optimizer,
                      {.generators = {{"noise", &noise}, {"order", &order}}});
  const double next = noise.normal();
  const std::uint32_t bits = order.random();
  Generator a, b;
  io::restore(path, run.net, run.optimizer, {{"order", &b}, {"noise", &a}});
  CHECK(a.normal() == next);
  CHECK(b.random() == bits);
  check_not_restored(path, run, {"only in the checkpoint: noise, order"});
  CHECK_THROWS_WITH(io::restore(path, run.net, run.optimizer, {{"order", &b}, {"nose", &a}}),
                    ContainsSubstring("only in the checkpoint: noise") &&
                        ContainsSubstring("only asked for: nose"));
  for (const auto& [name, generator] :
       io::Generators{{"default", &noise}, {"none", static_cast<Generator*>(nullptr)}}) {
    CHECK_THROWS_AS(
        io::save_checkpoint(path, run.net, run.optimizer, {.generators = {{name, generator}}}),
        ValueError);
    CHECK_THROWS_AS(io::restore(path, run.net, run.optimizer, {{name, generator}}), ValueError);
  }
}

TEST_CASE("checkpoint: states that cannot be stored") {
  const TemporaryFolder folder;
  Run run;
  const Net stranger;
  CHECK_THROWS_WITH(io::save_checkpoint(folder / "x", stranger, run.optimizer),
                    ContainsSubstring("is not one of the model's"));
  Clash clash;
  const optim::AdamW of_clash(nn::parameters(clash));
  CHECK_THROWS_WITH(io::save_checkpoint(folder / "x", clash, of_clash),
                    ContainsSubstring("'optimizer.weight' is reserved for the optimizer"));
  io::Json deep;
  for (int i = 0; i < 65; ++i)
    deep = io::JsonArray{deep};
  CHECK_THROWS_WITH(io::save_checkpoint(folder / "x", run.net, run.optimizer, {.user = deep}),
                    ContainsSubstring("the user's JSON is nested more than 64 deep"));
  CHECK_THROWS_AS(io::save_checkpoint(folder / "x", run.net, run.optimizer, {.user = "\xff"}),
                  ValueError);
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
