// Error messages of xgrad.

#include <regex>
#include <tuple>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/io/safetensors.hpp>

#include "lm/program/run.hpp"

TEST_CASE("xgrad: a command line that cannot be followed") {
  const TinyFolder folder;
  const auto refused = [&](const Arguments& arguments, const std::vector<std::string>& fragments) {
    check_refused(folder, arguments, 2, fragments);
  };
  refused({}, {"xgrad: a command is needed"});
  refused({"trian"}, {"unknown command 'trian'", "did you mean train?"});
  refused({"---"}, {"unknown command '---'"});
  refused("train --n-layers 3", {"train: unknown flag '--n-layers'", "did you mean --n-layer?"});
  refused("train --block_size=3", {"'--block_size';", "did you mean --block-size?"});
  refused("sample --chekpoint x", {"--chekpoint", "did you mean --checkpoint?"});
  refused("train --iters 5", {"'--iters'; did you mean --max-iters?"});
  const Result far = run(folder, "sample --best-of 3");
  CHECK_THAT(far.err, StartsWith("xgrad sample: unknown flag '--best-of'\n"));
  refused("train text", {"unexpected argument 'text'"});
  refused("train --n-embd 130", {"--n-embd 130 is not divisible by --n-head 4"});
  refused("train --min-lr 1", {"--min-lr 1 is above --learning-rate 0.001"});
  refused("train --warmup-iters 2001", {"--warmup-iters 2001 is beyond --lr-decay-iters 2000"});
  refused("train --preset tiny", {"--preset: 'tiny' is not one of nano, baby, micro"});
  refused("train --bias maybe", {"--bias", "'maybe'", "true or false"});
  refused("train --n-layer", {"--n-layer needs one value"});
  refused("train --n-layer 3 --n-layer 4", {"train: --n-layer needs one value"});
  refused("train --bias --bias", {"train: --bias needs one value"});
  refused("train --n-layer ''", {"--n-layer: '' is not a whole number"});
  refused("train --bias ''", {"--bias: '' is not true or false"});
  refused("eval x --split some", {"--split: 'some' is not one of train, val, all"});
  refused("graph x --format pdf", {"--format: 'pdf' is not one of html, dot, text"});
  refused("explain --layers 0,x y", {"--layers: 'x' is not a whole number from 0 to 999"});
  refused("explain --heads '' y", {"--heads: '' is not a whole number"});
  refused("eval x --checkpoint y", {"--checkpoint needs one value, once"});
  refused({"compare"}, {"RUN is needed: the folder of each run, or its metrics.jsonl"});
  refused("train --data ''", {"--data"});
  refused({"eval"}, {"RUN is needed"});
  refused("sample --tokens 5", {"RUN is needed"});
  refused("export --out x", {"export: RUN is needed"});

  const auto out_of_range = [&](const std::string& flag, const std::string& value,
                                const std::string& range) {
    refused({"train", flag, value}, {flag, "'" + value + "'", range});
  };
  out_of_range("--n-layer", "0", "a whole number from 1 to 1024");
  out_of_range("--n-layer", "2.5", "a whole number from 1 to 1024");
  out_of_range("--learning-rate", "-nan", "a number from 0 to 10");
  out_of_range("--learning-rate", "1e-400", "a number from 0 to 10");
  out_of_range("--n-layer", "0x10", "a whole number from 1 to 1024");
  out_of_range("--batch-size", "99999999999999999999", "a whole number from 1 to 65536");
  out_of_range("--dropout", "1", "a number from 0 to 0.999999");
  out_of_range("--dropout", "nan", "a number from 0 to 0.999999");
  out_of_range("--learning-rate", "fast", "a number from 0 to 10");
  out_of_range("--threads", "0", "a whole number from 1 to 1024");
  out_of_range("--seed", "4294967296", "a whole number from 0 to 4294967295");
}

TEST_CASE("xgrad: texts that cannot be trained on") {
  const TinyFolder folder;
  const auto refused = [&](const std::string& data, const std::vector<std::string>& fragments) {
    check_refused(folder, {"train", "--data", data}, 1, fragments);
  };
  write_bytes(folder / "empty", "");
  write_bytes(folder / "short", std::string(60, 'a'));
  write_bytes(folder / "almost", std::string(600, 'a'));
  write_bytes(folder / "latin1", "caf\xE9 au lait");
  refused("none", {"none: no such file"});
  refused(".", {"is a directory"});
  refused("empty", {"empty: the file is empty"});
  refused("short", {"the training split of short: 54 characters: too few for --block-size 64"});
  refused("almost", {"the validation split of almost: 60 characters: too few for --block-size 64"});
  refused("latin1", {"latin1: not UTF-8 at byte 3", "0xe9",
                     "it seems to be LATIN1; 'iconv -f LATIN1 -t UTF-8 OLD > NEW'"});
  write_bytes(folder / "utf16", std::string("c\0a\0f\0e\0", 8));
  refused("utf16", {"utf16: not UTF-8: it seems to be UTF-16LE;"});
  run_well(folder, tiny_train("--data almost --block-size 59 --max-iters 1"));
}

TEST_CASE("xgrad: folders that cannot take a run") {
  const TinyFolder folder;
  // A run that fails during its set-up leaves the folder as it was.
  std::filesystem::create_directories(folder / "half/samples.jsonl");
  write_bytes(folder / "half/config.json", R"({"block_size": 8})");  // of a run that was killed
  check_refused(folder, tiny_train("--out half --resume"), 1,
                {"half/samples.jsonl: cannot be written"});
  // An unreadable file is not called missing.
  CHECK(run(folder, tiny_train("--out /proc/self")).code == 1);
  // An empty folder is as good as a new one.
  std::filesystem::create_directory(folder / "fresh");
  CHECK(run(folder, tiny_train("--out fresh --max-iters 1")).code == 0);
}

TEST_CASE("xgrad: checkpoints and prompts that do not do") {
  const TrainedFolder folder;
  const auto refused = [&](const Arguments& arguments, const std::vector<std::string>& fragments) {
    check_refused(folder, arguments, 1, fragments);
  };
  const std::string& good = folder.checkpoint;
  refused({"sample", "--checkpoint", good, "--prompt", "the Zoë"},
          {"xgrad: --prompt: the vocabulary of 23 characters lacks 'Z' (U+005A)", "'ë' (U+00EB)"});
  refused({"sample", "--checkpoint", good, "--prompt", "a\xFF"},
          {"--prompt", "not UTF-8 at byte 1"});
  write_bytes(folder / "greek", std::string(300, 't') + "αβ");
  refused({"eval", "--checkpoint", good, "--data", "greek"},
          {"xgrad: greek: the vocabulary of 23 characters lacks 'α'", "'β'"});
  write_bytes(folder / "short", "the cat");
  refused({"eval", "--checkpoint", good, "--data", "short"},
          {"short: 7 characters: too few for --block-size 8"});
  write_bytes(folder / "one", "t");
  refused({"eval", "--checkpoint", good, "--data", "one"}, {"one: 1 character: too few"});
  refused({"eval", "--checkpoint", good, "--data", "none"}, {"none: no such file"});
  refused("eval --checkpoint none", {"none: cannot be opened"});
  refused("eval --checkpoint text", {"text: not a safetensors file"});

  const auto changed = [&](auto&& change, const std::vector<std::string>& fragments) {
    xgrad::io::TensorFile file = xgrad::io::load_safetensors(folder / good);
    change(file);
    xgrad::io::save_safetensors(folder / "changed", file);
    refused("sample --checkpoint changed", fragments);
  };
  const auto user = [&](auto&& change, const std::vector<std::string>& fragments) {
    changed(
        [&](xgrad::io::TensorFile& file) {
          Json json = Json::parse(file.metadata["user"]);
          change(json);
          file.metadata["user"] = json.dump();
        },
        fragments);
  };
  const auto config = [&](const char* key, const Json& value,
                          const std::vector<std::string>& fragments) {
    user([&](Json& json) { json["config"][key] = value; }, fragments);
  };
  changed([](auto& file) { file.metadata.erase("step"); }, {"changed: ", "not a checkpoint"});
  user([](Json& json) { json["config"] = {1}; }, {"another program", "no configuration"});
  user([](Json& json) { json.erase("characters"); },
       {"another program", "neither characters nor a tokenizer"});
  user([](Json& json) { json["characters"] = "ba"; }, {"'characters': a stored list"});
  changed([](auto& file) { file.tensors.erase("transformer.ln_f.weight"); },
          {"changed: does not fit the model", "transformer.ln_f.weight"});
  changed([](auto& file) { file.tensors.erase("transformer.wte.weight"); },
          {"asks for 3568 weights, and it has 3248"});
  config("n_embd", 32, {"n_embd 32, 23 characters) asks for"});
  config("block_size", 9, {"does not fit the model", "transformer.wpe.weight is (8, 16) here"});
  config("n_layer", 1000000, {"no 'n_layer', or one that --n-layer does not accept"});
  config("n_layer", 1024, {"n_layer 1024", "asks for"});
  changed(  // as many tensors as layers, but nothing in them
      [](auto& file) {
        for (int i = 0; i < 1000; ++i)
          file.tensors[std::to_string(i)] = xgrad::zeros({0});
        Json json = Json::parse(file.metadata["user"]);
        json["config"]["n_layer"] = 1000;
        file.metadata["user"] = json.dump();
      },
      {"n_layer 1000", "asks for"});
  config("n_head", 3, {"changed: n_embd 16 is not a multiple of n_head 3\n"});
  config("n_head", 0, {"has no 'n_head'"});
  config("bias", true, {"does not fit the model", "transformer.ln_f.bias"});
  config("n_embd", "many", {"'n_embd'"});
  config("n_embd", 1e30, {"'n_embd'"});
}

TEST_CASE("xgrad: a model that computes nothing finite") {
  const TrainedFolder folder;
  xgrad::io::TensorFile file = xgrad::io::load_safetensors(folder / folder.checkpoint);
  file.tensors["transformer.ln_f.weight"] = xgrad::full({16}, 3e38F);
  xgrad::io::save_safetensors(folder / "huge", file);
  const auto refused = [&](Arguments arguments, const std::string& says) {
    arguments.insert(arguments.end(), {"--checkpoint", "huge"});
    check_refused(folder, arguments, 1, {"xgrad: " + says});
  };
  refused({"sample"}, "it cannot write on: the model's logits are not finite\n");
  refused("explain --prompt 'the cat'", "huge: the model's loss on this text is ");
  refused("graph --prompt 'the cat'", "huge: the model's loss on this text is ");
}

TEST_CASE("xgrad: one of a thing is said as one") {
  const TinyFolder folder;
  const Result trained = run_well(folder, tiny_train("--out run --max-iters 1 --batch-size 1"));
  check_contains(trained.err, {"1 of 8 characters (1 block of 8)"});
  const std::string checkpoint = "run/checkpoint.safetensors";
  CHECK_THAT(run_well(folder, {"eval", "--checkpoint", checkpoint}).err,
             EndsWith("checkpoint.safetensors, after 1 step\n"));
  CHECK_THAT(run_well(folder, "train --resume run").err,
             ContainsSubstring("the run is finished, after 1 step.  A larger"));
  CHECK_THAT(run(folder, "explain --checkpoint run").out, ContainsSubstring(" 8 characters\n"));
  const std::string page = read_bytes(folder / "run/report.html");
  check_contains(page, {"<b>1 step</b>"});
  const std::string all = trained.err + trained.out + page + read_bytes(folder / "explain.html");
  CHECK_FALSE(std::regex_search(
      all, std::regex("\\b1 (steps|blocks|evaluations|rows|characters|layers|checkpoints)\\b")));
}
