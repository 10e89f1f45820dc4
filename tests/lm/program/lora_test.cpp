// xgrad with adapters to a model's weights: checkpoints hold only these.

#include <filesystem>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/lm/pretrained.hpp>
#include <xgrad/lm/tokenizer.hpp>

#include <xgrad/lm/program/runs/format.hpp>
#include "lm/program/run.hpp"

namespace {

/// A run to be adapted, and a pretrained model.
struct BaseFolder : TrainedFolder {
  BaseFolder() {
    const auto tokens = xgrad::lm::BytePairs::learn(tiny_text(), 270);
    xgrad::manual_seed(5);
    lm::save_pretrained(*this / "llama",
                        xgrad::lm::GPT(xgrad::lm::GPTConfig::llama({.block_size = 16,
                                                                    .vocab_size = 270,
                                                                    .n_layer = 1,
                                                                    .n_head = 2,
                                                                    .n_embd = 16,
                                                                    .n_inner = 24})));
    lm::write_tokenizer(*this / "llama/tokenizer.json", tokens);
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

/// The number that a text begins with: 12,345.
double count_in(std::string text) {
  text.resize(text.find(' '));
  std::erase(text, ',');
  return std::stod(text);
}

std::string sampled(const TemporaryFolder& folder, const std::string& checkpoint) {
  return run(folder, {"sample", "--checkpoint", checkpoint, "--tokens", "40"}).out;
}

}  // namespace

TEST_CASE("xgrad: adapters are trained and saved alone", "[lora]") {
  const BaseFolder folder;
  for (const std::string base : {"run", "llama"}) {
    INFO(base);
    const std::string path = base == "run" ? "/run/checkpoint.safetensors" : "/llama",
                      best = read_bytes(folder / "run/best.safetensors");
    const std::string whole = folder / "whole-" + base, half = folder / "half-" + base,
                      file = whole + "/checkpoint.safetensors";
    const Result trained = run_well(folder, adapting(base, whole, {}));
    double trained_ones = 0;
    for (const auto& [name, x] : io::load_safetensors(whole + "/adapter_model.safetensors").tensors)
      trained_ones += static_cast<double>(x.numel());
    const std::string all = trained.err.substr(trained.err.find(" 16: ") + 5);
    check_contains(
        trained.err,
        {fmt::format(" parameters, of which adapters of rank 4 are trained: "
                     "{}, {:.4f} %.",
                     runs::format_count(trained_ones), 100 * trained_ones / count_in(all))});
    for (const char* const name : {"checkpoint", "best"}) {
      const auto saved = io::load_safetensors(whole + "/" + name + ".safetensors");
      CHECK(saved.tensors.size() > 0);
      for (const auto& [tensor, x] : saved.tensors)
        CHECK_THAT(tensor, ContainsSubstring("lora_"));
      const Json lora = Json::parse(saved.metadata.at("user")).at("lora");
      CHECK_THAT(lora.at("base").get<std::string>(), Catch::Matchers::EndsWith(path));
      CHECK(lora.at("rank") == 4);
    }
    const Json config = Json::parse(read_bytes(whole + "/adapter_config.json"));
    CHECK(config.at("r") == 4);
    CHECK(config.at("lora_alpha") == 4);
    CHECK_THAT(config.at("base_model_name_or_path").get<std::string>(),
               Catch::Matchers::EndsWith(path));
    const std::string scored = run_well(folder, {"eval", "--checkpoint", whole}).out;
    CHECK(lines_of(scored).at(0) == lines_of(trained.out).at(0));

    // Resumed in the middle, and repeated from its flags, to the bit.
    run_well(folder, adapting(base, half, "--max-iters 3"));
    check_refused(folder, {"train", "--resume", half, "--lora-rank", "2"}, 1,
                  {"--lora-rank 2 is given, but the run has 4"});
    run_well(folder, {"train", "--resume", half, "--max-iters", "6"});
    run_well(folder, {"train", "--config", whole + "/config.json", "--out", "again-" + base});
    for (const std::string& other : {half, folder / "again-" + base})
      for (const char* const name :
           {"checkpoint.safetensors", "adapter_config.json", "adapter_model.safetensors"})
        CHECK(read_bytes(other + "/" + name) == read_bytes(whole + "/" + name));

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
    // Runs begin with its loss: further training of the adapters, and of all merged weights.
    for (const std::string& from : {whole, base == "run" ? merged : merged + "/"}) {
      const std::string more = folder / "more-" + base + (from == whole ? "-adapters" : "");
      run_well(folder, overridden({"train", "--out", more, "--data", "text", "--init-from"},
                                  {from, "--max-iters", "1", "--block-size", "8", "--eval-iters",
                                   "2", "--batch-size", "4"}));
      CHECK(metrics_of(more).at(0).at("val_loss_before").get<double>() ==
            Approx(metrics_of(whole).back().at("val_loss").get<double>()).epsilon(1e-5));
      CHECK(Json::parse(read_bytes(more + "/config.json")).contains("lora_rank") ==
            (from == whole));
    }

    for (const Arguments& arguments :
         {Arguments{"explain --prompt 'a cat'"}, {"graph --prompt 'a cat'"}})
      CHECK(run(folder, overridden(arguments, {"--checkpoint", whole, "--overwrite"})).code == 0);
    CHECK(run(folder, {"compare", whole, half}).code == 0);
    CHECK(read_bytes(folder / "run/best.safetensors") == best);
  }
}

TEST_CASE("xgrad: adapters whose model is gone, and flags that do not do", "[lora]") {
  const BaseFolder folder;
  run_well(folder, adapting("run", "ad", "--max-iters 3"));
  check_refused(folder, "train --lora-rank 2", 2, {"--lora-rank ", "--init-from names it"});
  check_refused(folder, "train --lora-rank 2 --resume auto --out new", 2, {"--init-from names it"});
  check_refused(folder, adapting("run", "no", "--lora-rank 0"), 2, {"--lora-rank: '0'"});
  check_refused(folder, adapting("run", "no", "--lora-rank 17"), 1, {"rank is 17, above"});
  check_refused(folder, adapting("ad", "no", "--lora-rank 2"), 1,
                {"--lora-rank 2 is given, but the model has 4"});

  const auto lost = [&](const std::string& why) {
    for (const Arguments& arguments : {Arguments{"sample --checkpoint ad"},
                                       {"eval --checkpoint ad"},
                                       {"export --checkpoint ad --out no"},
                                       {"train --resume ad --max-iters 6"}})
      check_refused(folder, arguments, 1,
                    {"ad/checkpoint.safetensors: holds adapters alone; their model must be in ",
                     "run/checkpoint.safetensors: put it there again, or a link to it\n", why});
  };
  fs::rename(folder / "run", folder / "moved");
  lost("cannot be opened");
  run_well(folder, tiny_train("--out run --seed 2 --max-iters 2"));
  lost("The model there has other weights.");
  fs::remove_all(folder / "run");
  fs::create_directory(folder / "run");
  fs::copy(folder / "ad/checkpoint.safetensors", folder / "run");  // a base with adapters
  lost("has adapters already");
  fs::remove_all(folder / "run");
  fs::create_directory_symlink(folder / "moved", folder / "run");
  run_well(folder, "train --resume ad --max-iters 6");

  const auto changed = [&](const char* key, const Json& value, const std::string& says) {
    io::TensorFile file = io::load_safetensors(folder / "ad/checkpoint.safetensors");
    Json json = Json::parse(file.metadata["user"]);
    json["lora"][key] = value;
    file.metadata["user"] = json.dump();
    io::save_safetensors(folder / "changed.safetensors", file);
    check_refused(folder, "sample --checkpoint changed.safetensors", 1,
                  {"changed.safetensors: ", says});
  };
  changed("base", 3, "the metadata's 'lora' names no 'base'");
  changed("rank", 0, "rank is 0");
  changed("rank", 1000000000000, "above the smaller side");
  changed("rank", 3, "does not fit the model");
  changed("alpha", "four", "alpha is 0");
}

TEST_CASE("xgrad: PEFT's folders of adapters", "[lora]") {
  const BaseFolder folder;
  for (const std::string base : {"run", "llama"}) {
    INFO(base);
    const std::string run_of = "ad-" + base, peft = "peft-" + base;
    run_well(folder, adapting(base, run_of, "--lora-alpha 8"));
    // The run's own files, or exported ones.
    CHECK(run(folder, {"export", run_of, "--adapters", "--out", peft}).out ==
          peft + ": adapter_config.json, adapter_model.safetensors\n");
    for (const char* const name : {"/adapter_config.json", "/adapter_model.safetensors"})
      CHECK(read_bytes(folder / peft + name) == read_bytes(folder / run_of + name));
    CHECK(sampled(folder, peft) == sampled(folder, run_of));
    CHECK(sampled(folder, run_of + "/adapter_model.safetensors") == sampled(folder, run_of));
    const auto scored = [&](const Arguments& checkpoint) {
      return run(folder, overridden("eval --data text", checkpoint)).out;
    };
    CHECK(scored({peft}) == scored({run_of}));
    check_refused(folder, {"eval", peft}, 1, {peft, "adapters, whose text is unknown; --data"});
    check_refused(folder, {"export", peft, "--adapters", "--out", peft, "--overwrite"}, 1,
                  {"is the same file as the input"});
    check_refused(folder, {"export", peft, "--adapters", "--out", run_of, "--overwrite"}, 1,
                  {"is a file of the run"});
    // A folder is a model's, or its adapters'.
    check_refused(folder, {"export", run_of, "--out", peft + "/"}, 1,
                  {"commands read the adapters there"});
    if (base == "llama")
      check_refused(folder, {"export", run_of, "--adapters", "--out", base}, 1,
                    {"llama: is a pretrained model's folder"});

    // They are trained further; the base's weights stay what they were.
    const std::string more = "more-" + base;
    const Arguments further = {"train", "--init-from",  peft, "--data",      "text", "--out",
                               more,    "--block-size", "8",  "--max-iters", "4",    "--eval-iters",
                               "2"};
    check_contains(run_well(folder, further).err,
                   {"From:  " + peft + ", adapters to /", "adapters of rank 4 are trained: "});
    const auto before = io::load_safetensors(folder / peft + "/adapter_model.safetensors"),
               after = io::load_safetensors(folder / more + "/adapter_model.safetensors");
    REQUIRE(before.tensors.size() == after.tensors.size());
    for (const auto& [name, x] : before.tensors)
      CHECK_FALSE(allclose(x, after.tensors.at(name), 0, 0));
    CHECK(before.metadata.at("xgrad_base") == after.metadata.at("xgrad_base"));
    for (const char* const name : {"/adapter_config.json", "/config.json"})
      CHECK(Json::parse(read_bytes(folder / more + name)).at("lora_alpha") == 8);
    run_well(folder, {"train", "--resume", more, "--max-iters", "6"});
    const auto refused = [&](const Arguments& flags, const std::string& says) {
      check_refused(folder, overridden(further, overridden("--out no", flags)), 1, {says});
    };
    refused("--lora-rank 2", "--lora-rank 2 is given, but the model has 4");
    refused("--lora-alpha 2", "--lora-alpha 2 is given, but the model has 8");
    refused("--lora-targets none", base == "run" ? "has c_attn,c_fc,c_proj" : "has down_proj,");

    // The base elsewhere: a path relative to the folder or to its parent, or --base.
    const auto based = [&](const std::string& path) {
      Json json = Json::parse(read_bytes(folder / peft + "/adapter_config.json"));
      json["base_model_name_or_path"] = path;
      write_bytes(folder / peft + "/adapter_config.json", json.dump());
    };
    for (const std::string& path : {"../" + base, base}) {
      based(path);
      CHECK(scored({peft}) == scored({run_of}));
    }
    based("hub/" + base);
    check_refused(folder, {"sample", peft}, 1,
                  {peft + ": the model that its adapters are for, hub/" + base,
                   ", is not there: --base DIR names it"});
    CHECK(scored({peft, "--base", base}) == scored({run_of}));
    check_refused(folder, {"sample", peft, "--base", run_of}, 1, {"has adapters already"});
    check_refused(folder, {"sample", base, "--base", base}, 1, {"has no adapters"});
    based(fs::absolute(folder / more));  // nested
    check_refused(folder, {"sample", peft}, 1, {"has adapters already"});
    based(peft);
    check_refused(folder, {"sample", peft}, 1, {"has adapters already"});
    check_refused(folder, {"sample", peft, "--base", base == "run" ? "llama" : "run"}, 1,
                  {"the adapters do not fit the model", "unexpected: base_model.model."});
    // So may be that of a run.
    fs::rename(folder / base, folder / "moved");
    check_refused(folder, {"sample", run_of}, 1, {"--base PATH names another place."});
    CHECK(scored({run_of, "--base", "moved"}) == scored({peft, "--base", "moved"}));
    run_well(folder, {"train", "--resume", more, "--max-iters", "7", "--base", "moved"});
    run_well(folder, {"train", "--resume", more, "--max-iters", "8"});
    fs::rename(folder / "moved", folder / base);
  }
}

TEST_CASE("xgrad: --lora-targets, and flags of adapters that do not do", "[lora]") {
  const BaseFolder folder;
  const std::string file = "/adapter_model.safetensors";
  run_well(folder, adapting("llama", "qv", "--lora-targets q_proj,v_proj"));
  const auto saved = io::load_safetensors(folder / "qv" + file).tensors;
  CHECK(saved.size() == 4);
  CHECK(saved.contains("base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight"));
  CHECK(Json::parse(read_bytes(folder / "qv/adapter_config.json")).at("target_modules") ==
        Json({"q_proj", "v_proj"}));
  run_well(folder, adapting("run", "fc", "--lora-targets mlp.c_proj"));
  CHECK(io::load_safetensors(folder / "fc" + file).tensors.size() == 2);
  const auto refused = [&](const Arguments& arguments, int code, const std::string& says) {
    check_refused(folder, arguments, code, {says});
  };
  refused(adapting("llama", "no", "--lora-targets c_attn"), 1,
          "no layer is called 'c_attn'; there are down_proj, gate_proj, ");
  refused(adapting("run", "no", "--lora-targets ''"), 2, "--lora-targets names no layer");
  for (const char* const flag : {"--lora-alpha", "--lora-targets", "--base"})
    refused({"train", "--init-from", "llama", "--data", "text", "--out", "no", flag, "1"},
            std::string(flag) == "--base" ? 1 : 2, flag);
  refused("export llama --adapters --out no", 1, "llama: has no adapters");
  refused("export qv --adapters", 2, "--adapters writes a folder: --out DIR/");
  fs::create_directory(folder / "bin");
  write_bytes(folder / "bin/adapter_config.json", "{}");
  write_bytes(folder / "bin/adapter_model.bin", "PK");
  refused("sample bin", 1, "adapter_model.bin holds Python pickles");
  refused(adapting("llama", "bin"), 1, "bin: the folder holds a run already (adapter_");

  // A head has adapters of its own, also if it is tied: the embedding stays as it is.
  for (const std::string base : {"run", "llama"}) {
    const std::string head = "head-" + base, half = "half-" + base;
    const Arguments targets = {"--lora-targets lm_head"};
    const Result trained = run_well(folder, adapting(base, head, targets));
    CHECK(io::load_safetensors(folder / head + file).tensors.size() == 2);
    run_well(folder, adapting(base, half, overridden(targets, "--max-iters 3")));
    run_well(folder, {"train", "--resume", half, "--max-iters", "6"});
    CHECK(read_bytes(folder / half + "/checkpoint.safetensors") ==
          read_bytes(folder / head + "/checkpoint.safetensors"));
    REQUIRE(run(folder, {"export", head, "--out", "merged-" + head + "/"}).code == 0);
    REQUIRE(run(folder, {"export", head, "--adapters", "--out", "peft-" + base}).code == 0);
    const auto score = [&](const std::string& of) {
      const std::string out = run(folder, {"eval", of, "--data", "text", "--block-size", "8"}).out;
      return std::stod(out.substr(out.find(' ')));
    };
    CHECK(score("peft-" + base) == Approx(score(head)).epsilon(1e-12));
    if (base == "llama")  // a folder of characters has no tokenizer
      CHECK(score("merged-" + head) == Approx(score(head)).epsilon(1e-6));
  }

  // Adapters that cannot be saved end no run.
  fs::remove(folder / "qv" + file);
  fs::create_directories(folder / "qv" + file + "/in the way");
  const Result blocked = run(folder, "train --resume qv --max-iters 9");
  CHECK(blocked.code == 1);
  check_contains(blocked.err, {"qv/adapter_model.safetensors: ", "; training continues"});
  CHECK(io::load_checkpoint(folder / "qv/checkpoint.safetensors").step == 9);
  fs::remove_all(folder / "qv" + file);
  run_well(folder, "train --resume qv --max-iters 10");
  CHECK(io::load_safetensors(folder / "qv" + file).tensors.size() == 4);
}
