// One run at a time in a folder.

#include "lm/program/run.hpp"

namespace fs = std::filesystem;

TEST_CASE("xgrad: one run at a time in a folder", "[resume]") {
  const TinyFolder folder;
  const Arguments endless = tiny_train("--out run --max-iters 1000000000 --eval-interval 100");
  Process first(folder, endless);
  wait_until([&] { return fs::exists(folder / "run/checkpoint.safetensors"); });
  // Another working folder, so that their output goes to other files.
  const TemporaryFolder elsewhere;
  check_refused(elsewhere, {"train", "--resume", folder / "run"}, 1,
                {"run: another process is training in this folder"});
  first.signal(SIGKILL);
  first.wait();
  // A lock dies with its process.  Temporary files of a killed process are removed.
  write_bytes(folder / "run/checkpoint.safetensors.123.4.tmp", "half");
  write_bytes(folder / "run/best.safetensors.123.5.tmp", "half");
  write_bytes(folder / "run/mine.safetensors.123.4.tmp", "not its own");
  Process second(elsewhere, {"train", "--resume", folder / "run"});
  wait_until([&] { return second.err().find("step ") != std::string::npos; });
  second.signal(SIGTERM);
  const Result result = second.wait();
  INFO(result.out << result.err);
  CHECK(result.code == 128 + SIGTERM);
  CHECK_FALSE(fs::exists(folder / "run/checkpoint.safetensors.123.4.tmp"));
  CHECK_FALSE(fs::exists(folder / "run/best.safetensors.123.5.tmp"));
  CHECK(fs::exists(folder / "run/mine.safetensors.123.4.tmp"));
}
