// Messages of xgrad that say what to write instead.

#include "lm/program/run.hpp"

TEST_CASE("xgrad: an argument without its flag, and a model that is elsewhere", "[hints]") {
  const TrainedFolder folder;
  const auto said = [&](const Arguments& words) { return run(folder, words).err; };
  write_bytes(folder / "flags.json", "{}");
  check_contains(said("train text"), {"unexpected argument 'text'; did you mean --data 'text'?"});
  check_contains(said("train run"), {"did you mean --resume or --init-from 'run'?"});
  check_contains(said("train flags.json"), {"did you mean --config 'flags.json'?"});
  check_contains(said("eval run text"), {"did you mean --data 'text'?"});
  check_contains(said("sample run 'the cat'"), {"did you mean --prompt 'the cat'?"});
  check_contains(said("train --bf16"), {"unknown flag '--bf16'; did you mean --dtype?"});
  check_contains(said("sample run --bf16"), {"there is none: train and eval alone have --dtype"});
  CHECK_THAT(said("train nothing"), StartsWith("xgrad train: unexpected argument "
                                               "'nothing'\n"));
  for (const Arguments& words :
       {Arguments{"sample org/tiny"}, {"train --data text --init-from org/tiny"}})
    check_contains(said(words), {"org/tiny: no such file or folder: nothing is downloaded here",
                                 "'hf download org/tiny --local-dir tiny'"});
  check_contains(said("sample gpt2"), {"'hf download gpt2 --local-dir gpt2'"});
  for (const char* const elsewhere : {"runs/000", "run/none", "none", "no/x.safetensors"})
    CHECK(said({"sample", elsewhere}).find("hub") == std::string::npos);
  std::filesystem::create_directory(folder / "runs");
  std::filesystem::rename(folder / "run", folder / "runs/000");
  for (const char* const command : {"sample", "compare", "report"})
    check_contains(said({command, "runs"}),
                   {"runs: the folder holds no ", "; name a run in it, or all: runs/*"});
}

TEST_CASE("xgrad: help is a command as well", "[hints]") {
  const TemporaryFolder folder;
  CHECK(run_well(folder, "help train").out == run_well(folder, "train --help").out);
  CHECK(run_well(folder, {"help"}).out == run_well(folder, {"--help"}).out);
}

TEST_CASE("xgrad: numbers and characters are said in words that fit", "[hints]") {
  const TrainedFolder folder;
  const std::string steady =
      run_well(folder, tiny_train("--out steady --warmup-iters 0 --min-lr 0.01")).err;
  check_contains(steady, {"\nRate:  0.01 at step 0, and 0.01 at the last.\n"});
  const Result threads = run(folder, tiny_train("--dry-run --threads 1024"));
  CHECK(threads.err.find("processors processors") == std::string::npos);
  // The flags of a new run cannot be followed by beginning one.
  CHECK_THAT(run(folder, tiny_train("--init-from run --out no --n-layer 2")).err,
             EndsWith("\nOmit them.\n"));
  write_bytes(folder / "greek", tiny_text() + "α");
  const std::string cure = "; a model with --tokens bpe knows all\n";
  CHECK_THAT(run(folder, "sample run --prompt α").err, EndsWith(cure));
  CHECK_THAT(run(folder, "eval run --data greek").err, EndsWith(cure));
}
