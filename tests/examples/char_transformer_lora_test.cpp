// char_transformer with adapters to a model's weights: checkpoints hold only these.

#include <filesystem>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/pretrained.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/io/tokenizer.hpp>

#include "examples/char_transformer_run.hpp"

namespace {

namespace fs = std::filesystem;
namespace io = xgrad::io;

/// A run to be adapted, and a pretrained model.
struct BaseFolder : TrainedFolder {
  BaseFolder() {
    const auto tokens = xgrad::text::BytePairs::learn(tiny_text(), 270);
    xgrad::manual_seed(5);
    io::save_pretrained(*this / "llama",
                        xgrad::nn::GPT(xgrad::nn::GPTConfig::llama({.block_size = 16,
                                                                    .vocab_size = 270,
                                                                    .n_layer = 1,
                                                                    .n_head = 2,
                                                                    .n_embd = 16,
                                                                    .n_inner = 24})));
    io::write_tokenizer(*this / "llama/tokenizer.json", tokens);
  }
};

Arguments adapting(const std::string& base, const std::string& out, const Arguments& more = {}) {
  Arguments all = {"train", "--init-from",     base,  "--lora-rank",     "4", "--data",
                   "text",  "--out",           out,   "--block-size",    "8", "--max-iters",
                   "6",     "--batch-size",    "4",   "--eval-iters",    "2", "--lr-decay-iters",
                   "6",     "--warmup-iters",  "0",   "--eval-interval", "3", "--dropout",
                   "0.1",   "--learning-rate", "0.05"};
  return overridden(all, more);
}

std::string sampled(const TemporaryFolder& folder, const std::string& checkpoint) {
  return run(folder, {"sample", "--checkpoint", checkpoint, "--tokens", "40"}).out;
}

}  // namespace

TEST_CASE("char_transformer: adapters are trained and saved alone", "[lora]") {
  const BaseFolder folder;
  for (const std::string base : {"run", "llama"}) {
    INFO(base);
    const std::string path = base == "run" ? "/run/checkpoint.safetensors" : "/llama",
                      best = read_bytes(folder / "run/best.safetensors");
    const std::string whole = folder / "whole-" + base, half = folder / "half-" + base,
                      file = whole + "/checkpoint.safetensors";
    const Result trained = run_well(folder, adapting(base, whole, {}));
    check_contains(trained.err, {" parameters, of which adapters of rank 4 are trained."});
    for (const char* const name : {"checkpoint", "best"}) {
      const auto saved = io::load_safetensors(whole + "/" + name + ".safetensors");
      CHECK(saved.tensors.size() > 0);
      for (const auto& [tensor, x] : saved.tensors)
        CHECK_THAT(tensor, ContainsSubstring("lora_"));
      const Json lora = Json::parse(saved.metadata.at("user")).at("lora");
      CHECK_THAT(lora.at("base").get<std::string>(), Catch::Matchers::EndsWith(path));
      CHECK(lora.at("rank") == 4);
    }
    const std::string scored = run_well(folder, {"eval", "--checkpoint", whole}).out;
    CHECK(lines_of(scored).at(0) == lines_of(trained.out).at(0));

    // Resumed in the middle, and repeated from its flags, to the bit.
    run_well(folder, adapting(base, half, {"--max-iters", "3"}));
    check_refused(folder, {"train", "--resume", half, "--lora-rank", "2"}, 1,
                  {"--lora-rank 2 is given, but the run has 4"});
    run_well(folder, {"train", "--resume", half, "--max-iters", "6"});
    run_well(folder, {"train", "--config", whole + "/config.json", "--out", "again-" + base});
    for (const std::string& other : {half, folder / "again-" + base})
      CHECK(read_bytes(other + "/checkpoint.safetensors") == read_bytes(file));

    // After merging, it is an ordinary model and writes the same.
    const std::string merged = folder / "merged-" + base;
    if (base == "run") {
      run_well(folder, {"export", "--checkpoint", whole, "--out", merged});
    } else {
      CHECK(run(folder, {"export", "--checkpoint", whole, "--out", merged + "/"}).code == 0);
    }
    CHECK(sampled(folder, whole) == sampled(folder, merged));
    // So is its loss over a text, in the longest possible blocks, not those of training.
    const auto loss = [&](const std::string& of) {
      const std::string out = run(folder, {"eval", "--checkpoint", of, "--data", "text"}).out;
      check_contains(out, {base == "run" ? "text, 8 characters each" : "text, 16 tokens each"});
      return std::stod(out.substr(out.find(' ')));
    };
    CHECK(loss(whole) == Approx(loss(merged)).epsilon(1e-6));
    CHECK(sampled(folder, whole) != sampled(folder, base));
    // The same holds for a run without adapters that begins with its loss.
    const std::string more = folder / "more-" + base;
    run_well(folder, overridden({"train", "--out", more, "--data", "text", "--init-from"},
                                {whole, "--max-iters", "1", "--block-size", "8", "--eval-iters",
                                 "2", "--batch-size", "4"}));
    CHECK(metrics_of(more).at(0).at("val_loss_before").get<double>() ==
          Approx(metrics_of(whole).back().at("val_loss").get<double>()).epsilon(1e-5));
    CHECK_FALSE(Json::parse(read_bytes(more + "/config.json")).contains("lora_rank"));

    for (const Arguments& arguments :
         {Arguments{"explain", "--prompt", "a cat"}, {"graph", "--prompt", "a cat"}})
      CHECK(run(folder, overridden(arguments, {"--checkpoint", whole, "--overwrite"})).code == 0);
    CHECK(run(folder, {"compare", whole, half}).code == 0);
    CHECK(read_bytes(folder / "run/best.safetensors") == best);
  }
}

TEST_CASE("char_transformer: adapters whose model is gone, and flags that do not do", "[lora]") {
  const BaseFolder folder;
  run_well(folder, adapting("run", "ad", {"--max-iters", "3"}));
  check_refused(folder, {"train", "--lora-rank", "2"}, 2, {"--lora-rank ", "--init-from names it"});
  check_refused(folder, {"train", "--lora-rank", "2", "--resume", "auto", "--out", "new"}, 2,
                {"--init-from names it"});
  check_refused(folder, adapting("run", "no", {"--lora-rank", "0"}), 2, {"--lora-rank: '0'"});
  check_refused(folder, adapting("run", "no", {"--lora-rank", "17"}), 1, {"rank is 17, above"});
  check_refused(folder, adapting("ad", "no"), 1, {"ad/checkpoint.safetensors: has adapters alre"});
  check_refused(folder, {"export", "--checkpoint", "ad", "--out", "run/checkpoint.safetensors"}, 1,
                {"is the same file as the input ", "run/checkpoint.safetensors: give it"});
  CHECK_FALSE(fs::exists(folder / "no"));

  const std::string adapters = read_bytes(folder / "ad/checkpoint.safetensors");
  const auto lost = [&](const std::string& why) {
    for (const Arguments& arguments : {Arguments{"sample", "--checkpoint", "ad"},
                                       {"eval", "--checkpoint", "ad"},
                                       {"export", "--checkpoint", "ad", "--out", "no"},
                                       {"train", "--resume", "ad", "--max-iters", "6"}})
      check_refused(
          folder, arguments, 1,
          {"ad/checkpoint.safetensors: holds adapters alone; their model must be in ",
           "run/checkpoint.safetensors: put it there again, or a link to it\n", why});
    CHECK(read_bytes(folder / "ad/checkpoint.safetensors") == adapters);
    CHECK_FALSE(fs::exists(folder / "no"));
  };
  fs::rename(folder / "run", folder / "moved");
  lost("cannot be opened");
  run_well(folder, tiny_train({"--out", "run", "--seed", "2", "--max-iters", "2"}));
  lost("The model there has other weights.");
  fs::remove_all(folder / "run");
  fs::create_directory(folder / "run");
  fs::copy(folder / "ad/checkpoint.safetensors", folder / "run");  // a base with adapters
  lost("has adapters already");
  fs::remove_all(folder / "run");
  fs::create_directory_symlink(folder / "moved", folder / "run");
  run_well(folder, {"train", "--resume", "ad", "--max-iters", "6"});

  const auto changed = [&](const char* key, const Json& value, const std::string& says) {
    io::TensorFile file = io::load_safetensors(folder / "ad/checkpoint.safetensors");
    Json json = Json::parse(file.metadata["user"]);
    json["lora"][key] = value;
    file.metadata["user"] = json.dump();
    io::save_safetensors(folder / "changed.safetensors", file);
    check_refused(folder, {"sample", "--checkpoint", "changed.safetensors"}, 1,
                  {"changed.safetensors: ", says});
  };
  changed("base", 3, "the metadata's 'lora' names no 'base'");
  changed("rank", 0, "rank is 0");
  changed("rank", 1000000000000, "above the smaller side");
  changed("rank", 3, "does not fit the model");
  changed("alpha", "four", "alpha is 0");
}
