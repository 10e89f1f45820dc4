// Runs that are asked to stop.

#include <fcntl.h>

#include <algorithm>
#include <xgrad/autograd/sanitizers.hpp>
#include <xgrad/io/checkpoint.hpp>

#include "lm/program/run.hpp"

namespace {

namespace fs = std::filesystem;

Arguments endless(const Arguments& more = {}) {
  return overridden(tiny_train("--out run --max-iters 1000000 --eval-interval 1000000"), more);
}

/// Replaces a stream by a device that rejects writes.
auto to_full(int stream) {
  return [stream] { ::dup2(::open("/dev/full", O_WRONLY), stream); };
}

void wait_for_rows(const TemporaryFolder& folder, std::size_t rows) {
  wait_until([&] {
    const std::string text = read_bytes(folder / "run/metrics.jsonl");
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) >= rows;
  });
}

}  // namespace

TEST_CASE("xgrad: a signal ends a run with its model saved", "[stop]") {
  for (const auto& [number, name] :
       {std::pair{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}}) {
    const TinyFolder folder;
    Process process(folder, endless("--threads 1"));
    wait_for_rows(folder, 5);
    process.signal(number);
    const Result result = process.wait();
    INFO(result.out << result.err);
    CHECK(result.code == 128 + number);
    CHECK(result.out == "");
    CHECK(warnings_in(result.err) == "");
    CHECK_THAT(result.err, ContainsSubstring(std::string("Stopped by ") + name));
    // The last line is the command that resumes.
    CHECK_THAT(result.err,
               EndsWith("\n  " + std::string(xgrad_program) + " train --resume run --threads 1\n"));
    const auto checkpoint = xgrad::io::load_checkpoint(folder / "run/checkpoint.safetensors");
    CHECK(checkpoint.step == metrics_of(folder / "run").size());
    CHECK(checkpoint.step >= 5);
    CHECK(run(folder, "eval --checkpoint run/checkpoint.safetensors").code == 0);
  }
}

TEST_CASE("xgrad: an evaluation that is interrupted is made again", "[stop]") {
  const TinyFolder folder;
  const auto train = [](const std::string& out, const Arguments& more = {}) {
    const char* const batches = XGRAD_SANITIZER ? "2500" : "10000";  // longer than 40 ms
    return overridden(tiny_train({"--max-iters", "14", "--eval-iters", batches, "--out", out}),
                      more);
  };
  run_well(folder, train("whole"));
  for (int i = 0; i < 2; ++i) {
    Process process(folder, train("run", {"--resume"}));
    if (i == 0)
      wait_for_rows(folder, 9);  // the tenth comes after its evaluation
    else
      wait_until([&] { return process.err().find("Run: ") != std::string::npos; });
    sleep_ms(40);
    process.signal(SIGINT);
    const Result result = process.wait();
    INFO(result.out << result.err);
    CHECK(result.code == 128 + SIGINT);
    const auto checkpoint = xgrad::io::load_checkpoint(folder / "run/checkpoint.safetensors");
    CHECK(checkpoint.step == 10);
    const std::vector<Json> rows = metrics_of(folder / "run");
    REQUIRE(rows.size() == 10);
    CHECK_FALSE(rows.back().contains("val_loss"));
  }
  run_well(folder, "train --resume run");
  CHECK((timeless_metrics_of(folder / "run") == timeless_metrics_of(folder / "whole")));
  for (const char* const name : {"/checkpoint.safetensors", "/best.safetensors"})
    CHECK((read_bytes(folder / ("run" + std::string(name))) ==
           read_bytes(folder / ("whole" + std::string(name)))));
}

TEST_CASE("xgrad: stopped before the first step, a run leaves nothing", "[stop]") {
  const TinyFolder folder;
  Process process(
      folder,
      "train --data text --block-size 64 --n-embd 512 --n-head 8 --n-layer 8 --batch-size 64");
  wait_until([&] { return process.err().find("Steps: ") != std::string::npos; });
  process.signal(SIGINT);
  const Result result = process.wait();
  INFO(result.out << result.err);
  // The signal may arrive before its handler is set: then it ends the program.
  CHECK((result.code == 128 + SIGINT || result.code == -SIGINT));
  CHECK_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("xgrad: a signal ends an evaluation within a batch", "[stop]") {
  const TinyFolder folder;
  // A batch takes half a minute, as of --preset baby.
  Process process(
      folder, tiny_train("--batch-size 1024 --block-size 200 --n-embd 384 --n-head 6 --n-layer 6"));
  wait_until([&] { return process.err().find("Eval: ") != std::string::npos; });
  const double before = process.processor_time();
  wait_until([&] { return process.processor_time() > before + 1; });
  process.signal(SIGINT);
  double last = process.processor_time();
  const double asked = last;
  wait_until([&] {
    last = std::max(last, process.processor_time());
    return process.ended();
  });
  CHECK(last - asked < (XGRAD_SANITIZER ? 20 : 6));
  const Result result = process.wait();
  INFO(result.err);
  CHECK(result.code == 128 + SIGINT);
  CHECK_THAT(result.err, EndsWith("before the first step; nothing was written.\n"));
}

TEST_CASE("xgrad: a second signal ends a run at once", "[stop]") {
  const TinyFolder folder;
  run_well(folder, endless("--max-iters 3"));
  // A run whose first step takes minutes.
  const Arguments slow =
      tiny_train("--out slow --gradient-accumulation-steps 65536 --batch-size 512");
  {
    Process process(folder, slow);
    wait_until([&] { return process.err().find("before the first step") != std::string::npos; });
    // A signal between the two would end it without a step.
    const double evaluated = process.processor_time();
    wait_until([&] { return process.processor_time() > evaluated + 0.2; });
    process.signal(SIGINT);
    sleep_ms(600);
    process.signal(SIGTERM);
    const Result result = process.wait();
    INFO(result.out << result.err);
    CHECK(result.code == -SIGTERM);
    CHECK_FALSE(fs::exists(folder / "slow"));
  }
  // Two signals at once count as one: `timeout` sends a signal to the process and to its group.
  Process twice(folder, "train --resume run --max-iters 1000000");
  wait_for_rows(folder, 4);
  for (const int signal : {SIGTERM, SIGTERM, SIGINT}) {
    twice.signal(signal);
    sleep_ms(1);
  }
  const int code = twice.wait().code;
  // Signals that wait for a process that does not run come in the order of their numbers.
  CHECK((code == 128 + SIGTERM || code == 128 + SIGINT));
  CHECK(xgrad::io::load_checkpoint(folder / "run/checkpoint.safetensors").step >= 4);
}

TEST_CASE("xgrad: a hangup that is ignored stays ignored", "[stop]") {
  const TinyFolder folder;
  Process process(folder, endless(), [] { ::signal(SIGHUP, SIG_IGN); });
  wait_for_rows(folder, 5);
  process.signal(SIGHUP);
  const std::size_t rows = metrics_of(folder / "run").size();
  wait_for_rows(folder, rows + 50);
  process.signal(SIGTERM);
  CHECK(process.wait().code == 128 + SIGTERM);
}

TEST_CASE("xgrad: a closed pipe ends a run quietly, with its model saved", "[stop]") {
  const TinyFolder folder;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  Process process(folder, endless(), [&] { ::dup2(ends[1], STDERR_FILENO); });
  ::close(ends[1]);
  // As `2>&1 | head` does.
  std::string read;
  char byte = 0;
  while (read.find("\nstep ") == std::string::npos && ::read(ends[0], &byte, 1) == 1)
    read += byte;
  ::close(ends[0]);
  const Result result = process.wait();
  INFO(read);
  CHECK(result.code == 128 + SIGPIPE);
  CHECK(result.out == "");
  const auto checkpoint = xgrad::io::load_checkpoint(folder / "run/checkpoint.safetensors");
  CHECK(checkpoint.step == metrics_of(folder / "run").size());
  Process again(folder, "train --resume run");
  wait_for_rows(folder, checkpoint.step + 5);
  again.signal(SIGTERM);
  CHECK(again.wait().code == 128 + SIGTERM);
}

TEST_CASE("xgrad: output that cannot be written does not end a run", "[stop]") {
  const TinyFolder folder;
  Process process(folder, endless("--max-iters 20"), to_full(STDOUT_FILENO));
  const Result result = process.wait();
  CHECK(result.code == 1);
  check_contains(result.err, {"standard output could not be written: No space left"});
  CHECK(xgrad::io::load_checkpoint(folder / "run/checkpoint.safetensors").step == 20);
}

TEST_CASE("xgrad: standard streams that are closed get nothing else's place", "[stop]") {
  const TinyFolder folder;
  Process process(folder, endless("--max-iters 20"), [] {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      ::close(stream);
  });
  CHECK(process.wait().code == 1);  // nothing could be printed
  CHECK(metrics_of(folder / "run").size() == 20);
  CHECK(xgrad::io::load_checkpoint(folder / "run/checkpoint.safetensors").step == 20);
}

TEST_CASE("xgrad: failed output is reported by every command", "[stop]") {
  const TrainedFolder folder;
  for (const Arguments& arguments :
       {Arguments{"sample", "--checkpoint", folder.checkpoint, "--tokens", "5"},
        Arguments{"eval --checkpoint " + folder.checkpoint}}) {
    const Result result = Process(folder, arguments, to_full(STDOUT_FILENO)).wait();
    INFO(arguments[0]);
    CHECK(result.code == 1);
    check_contains(result.err, {"standard output could not be written: No space left"});
  }
  // A warning that cannot be written changes no exit code.
  CHECK(Process(folder, {"frob"}, to_full(STDERR_FILENO)).wait().code == 2);
  CHECK(Process(folder, "eval --checkpoint none", to_full(STDERR_FILENO)).wait().code == 1);
}

TEST_CASE("xgrad: the command that resumes means the folder", "[stop]") {
  for (const std::string name : {"auto", "-x"}) {
    const TinyFolder folder;
    Process process(folder, tiny_train({"--out=" + name, "--max-iters", "1000000"}));
    wait_until([&] { return std::filesystem::exists(folder / (name + "/metrics.jsonl")); });
    process.signal(SIGINT);
    const Result result = process.wait();
    INFO(result.out << result.err);
    CHECK(result.code == 128 + SIGINT);
    check_contains(result.err, {" train --resume ./" + name});
  }
}
