// Inputs of the commands of xgrad: texts from files and pipes, models from folders.

#include <algorithm>
#include <filesystem>

#include "lm/program/run.hpp"

namespace {

std::string other_text() { return times(30, "the mat sat on the cat.\n"); }

/// The program with a text on its standard input, from a pipe.
Result piped(const TemporaryFolder& folder, const std::string& text, const Arguments& arguments) {
  Arguments words = {"sh", "-c", "cat " + text + R"( | "$0" "$@")"};
  for (const std::string& word : command(arguments))
    words.push_back(word);
  return Process(folder, [] {}, words).wait();
}

}  // namespace

TEST_CASE("xgrad: a run's folder stands for its checkpoint", "[texts]") {
  const TrainedFolder folder;
  const auto out = [&](const std::string& checkpoint, Arguments arguments) {
    arguments.insert(arguments.begin() + 1, {"--checkpoint", checkpoint});
    return ran(folder, arguments).out;
  };
  fs::create_directory(folder / "best");
  fs::copy(folder / "run/best.safetensors", folder / "best/best.safetensors");
  fs::copy(folder / "run/config.json", folder / "best/config.json");
  for (const Arguments& arguments : {Arguments{"eval"},
                                     {"eval --data text"},
                                     {"sample --tokens 20"},
                                     {"graph --format text --prompt 'the cat'"},
                                     {"export --out model.safetensors"}}) {
    const auto again = [&](const std::string& path) {
      fs::remove(folder / "model.safetensors");
      return out(path, arguments);
    };
    CAPTURE(arguments);
    CHECK(again("run") == again(folder.checkpoint));
    CHECK(again("run/") == again(folder.checkpoint));
    CHECK(again("best") == again("run/best.safetensors"));
  }
  out("run", "explain --length 8");
  CHECK_THAT(run(folder, "eval best").err, ContainsSubstring("best/best.safetensors, after "));
  run_well(folder, tiny_train("--init-from run --out 'from folder' --max-iters 2"));
  run_well(folder, tiny_train({"--init-from", folder.checkpoint, "--out", "from file",
                               "--max-iters", "2"}));
  CHECK((read_bytes(folder / "from folder/checkpoint.safetensors") ==
         read_bytes(folder / "from file/checkpoint.safetensors")));
  fs::create_directory(folder / "empty");
  for (const char* const name : {"eval", "sample", "explain", "graph", "export"})
    check_refused(folder, {name, "--checkpoint", "empty"}, 1,
                  {"empty: the folder holds no checkpoint"});
  check_refused(folder, tiny_train("--init-from empty --out no"), 1,
                {"empty: the folder holds no checkpoint"});
}

TEST_CASE("xgrad: several samples, apart from each other", "[texts]") {
  const TrainedFolder folder;
  const auto sample = [&](const Arguments& more) {
    const Arguments all = overridden(
        {"sample", "--checkpoint", folder.checkpoint, "--tokens", "30", "--prompt", "the cat"},
        more);
    return run_well(folder, all).out;
  };
  const std::string line = "---------------\n", one = sample({});
  CHECK(sample("--num-samples 1") == one);
  const std::string three = sample("--num-samples 3");
  REQUIRE(three.size() == 3 * one.size() + 2 * line.size());
  CHECK_THAT(three, StartsWith(one + line + "the cat"));
  const std::string second = three.substr(one.size() + line.size(), one.size()),
                    third = three.substr(2 * (one.size() + line.size()));
  CHECK(three.substr(2 * one.size() + line.size(), line.size()) == line);
  CHECK(second != one);  // one generator for all
  CHECK(third != second);
  CHECK(sample("--num-samples 3") == three);
  check_refused(folder, {"sample", "--checkpoint", folder.checkpoint, "--num-samples", "0"}, 2,
                {"--num-samples", "from 1"});
}

TEST_CASE("xgrad: a text from standard input", "[texts]") {
  const TinyFolder folder;
  const auto well = [&](const std::string& text, const Arguments& arguments) {
    const Result result = piped(folder, text, arguments);
    INFO(result.out << result.err);
    CHECK(result.code == 0);
    return result;
  };
  run_well(folder, tiny_train("--out file"));
  well("text", tiny_train("--data - --out pipe"));
  for (const char* const name : {"/checkpoint.safetensors", "/best.safetensors"})
    CHECK((read_bytes(folder / ("file" + std::string(name))) ==
           read_bytes(folder / ("pipe" + std::string(name)))));
  const std::string checkpoint = "pipe/checkpoint.safetensors";
  CHECK(well("text", {"eval", "--checkpoint", checkpoint, "--data", "-", "--split", "val"})
            .out.substr(0, 20) ==
        run_well(folder, "eval --checkpoint file/checkpoint.safetensors").out.substr(0, 20));
  well("text", {"explain", "--checkpoint", checkpoint, "--data", "-", "--length", "8"});
  // It no longer exists.
  for (const Arguments& arguments :
       {Arguments{"train --resume pipe --max-iters 44"}, {"eval", "--checkpoint", checkpoint}}) {
    const Result result = piped(folder, "/dev/null", arguments);
    CHECK(result.code == 1);
    check_contains(result.err, {"standard input", "--data FILE"});
  }
  well("text", "train --resume pipe --max-iters 44 --data -");
  run_well(folder, "train --resume pipe --max-iters 48 --data text");
  CHECK(metrics_of(folder / "pipe").size() == 48);
  const Result empty = piped(folder, "/dev/null", tiny_train("--data -"));
  CHECK(empty.code == 1);
  check_contains(empty.err, {"empty"});
  CHECK_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("xgrad: a text of its own to validate on", "[texts]") {
  const TinyFolder folder;
  write_bytes(folder / "other", other_text());
  const Result result = run_well(folder, tiny_train("--out run --val-data other"));
  check_contains(result.err, {"2,340 to train on, 720 to validate"});
  check_contains(result.out, {"all 89 blocks"});
  const std::string loss = result.out.substr(result.out.find("loss "), 14);
  const auto eval = [&](const Arguments& more) {
    const Arguments all = overridden({"eval --checkpoint run"}, more);
    const Result scored = ran(folder, all);
    return scored.out;
  };
  // Its path is stored, and no other text is scored.
  CHECK_THAT(eval({}), StartsWith("val_" + loss));
  CHECK_THAT(eval("--data other"), StartsWith(loss));
  check_contains(eval("--split train"), {"train_loss ", "all 292 blocks"});
  CHECK_THAT(Json::parse(read_bytes(folder / "run/config.json")).at("val_data").get<std::string>(),
             EndsWith("/other"));
  run_well(folder, "train --resume run --max-iters 44");
  run_well(folder, tiny_train("--out whole --val-data other --max-iters 44"));
  CHECK((read_bytes(folder / "run/checkpoint.safetensors") ==
         read_bytes(folder / "whole/checkpoint.safetensors")));
  run_well(folder, "train --config run/config.json --out again");
  CHECK((read_bytes(folder / "run/checkpoint.safetensors") ==
         read_bytes(folder / "again/checkpoint.safetensors")));
  fs::rename(folder / "other", folder / "moved");
  check_refused(folder, "train --resume run --max-iters 48", 1,
                {"other: no such file", "--val-data FILE"});
  check_refused(folder, "eval --checkpoint run", 1, {"other: no such file"});
  run_well(folder, "train --resume run --max-iters 48 --val-data moved");
  check_refused(folder, "train --resume run --max-iters 52 --val-data text", 1,
                {"another text than the run in run"});
  // Rejected texts.
  write_bytes(folder / "greek", other_text() + "\u03b1");
  write_bytes(folder / "short", "the cat");
  const auto refused = [&](const std::string& file, const std::vector<std::string>& fragments) {
    check_refused(folder, tiny_train({"--val-data", file}), 1, fragments);
  };
  refused("greek", {"greek: ", "'\u03b1'"});
  refused("short", {"short: 7 characters: too few for --block-size 8"});
  refused("none", {"none: no such file"});
}
