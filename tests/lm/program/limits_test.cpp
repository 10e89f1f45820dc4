// Sizes of one, short runs, many threads, and 20,000 steps.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>
#include <xgrad/autograd/threads.hpp>

#include "lm/program/run.hpp"

#ifdef __linux__
TEST_CASE("xgrad: memory stays flat over 20,000 steps", "[.soak]") {
  const TinyFolder folder;
  Process process(folder, tiny_train("--max-iters 20000 --dropout 0.1 --eval-interval 500"));
  std::vector<double> megabytes;
  const std::string status = "/proc/" + std::to_string(process.id()) + "/status";
  while (!process.ended()) {
    const std::string text = read_bytes(status);
    if (const std::size_t at = text.find("VmRSS:"); at != std::string::npos)
      megabytes.push_back(std::stod(text.substr(at + 6)) / 1e3);
    sleep_ms(50);
  }
  REQUIRE(process.wait().code == 0);
  const auto begin = megabytes.begin();
  const auto tenth = static_cast<std::ptrdiff_t>(megabytes.size() / 10);
  REQUIRE(tenth > 2);
  const double early = *std::max_element(begin, begin + tenth);
  const double late = *std::max_element(begin + 5 * tenth, megabytes.end());
  CHECK(late < early + 1);
  WARN("at most " << early << " MB in the first tenth, " << late << " MB in the last half");
}
#endif

TEST_CASE("xgrad: sizes of one") {
  const TinyFolder folder;
  write_bytes(folder / "same", std::string(200, 'a'));
  const std::vector<Arguments> smallest = {
      {"--max-iters 0"},
      {"--max-iters 1"},
      {"--block-size 1"},
      {"--batch-size 1"},
      {"--data same"},
      {"--n-embd 1 --n-head 1"},
      {"--data same --block-size 1 --batch-size 1 --n-embd 1 --n-head 1 --dropout 0.5 --max-iters "
       "3 --eval-iters 1 --eval-interval 1"},
  };
  for (std::size_t i = 0; i < smallest.size(); ++i) {
    const std::string out = "run" + std::to_string(i);
    Arguments arguments = tiny_train({"--out", out});
    arguments = overridden(arguments, smallest[i]);
    run_well(folder, arguments);
    const std::string checkpoint = out + "/checkpoint.safetensors";
    run_well(folder, {"eval", "--checkpoint", checkpoint});
    const std::string text = run_well(folder, {"sample", "--checkpoint", checkpoint}).out;
    CHECK(text.size() == 502);  // the first one, 500 characters, a newline
  }
  // The loss of a vocabulary of one.
  CHECK_THAT(run_well(folder, "eval --checkpoint run6/checkpoint.safetensors").out,
             StartsWith("val_loss 0"));
}

TEST_CASE("xgrad: texts of one character and of two") {
  const TinyFolder folder;
  write_bytes(folder / "one", "a");
  write_bytes(folder / "two", "ab");
  for (const char* const text : {"one", "two"})
    check_refused(folder, {"train", "--data", text, "--block-size", "1"}, 1,
                  {fmt::format("the training split of {}: ", text), "too few for --block-size 1"});
}

TEST_CASE("xgrad: the schedule follows --max-iters") {
  const TinyFolder folder;
  const auto recipe = [&](const Arguments& more) {
    const Json json = Json::parse(config_of(folder, more));
    return std::vector<double>{json.at("warmup_iters"), json.at("lr_decay_iters"),
                               json.at("min_lr")};
  };
  const std::vector<std::pair<Arguments, std::vector<double>>> cases = {
      {{}, {100, 2000, 1e-4}},  // presets are as they were
      {{"--preset baby"}, {100, 5000, 1e-4}},
      {{"--preset micro"}, {0, 1000, 1e-3}},
      {{"--max-iters 60"}, {3, 60, 1e-4}},
      {{"--max-iters 5000"}, {100, 5000, 1e-4}},
      {{"--max-iters 0"}, {0, 0, 1e-4}},
      {{"--max-iters 60 --warmup-iters 7"}, {7, 60, 1e-4}},
      {{"--max-iters 60 --lr-decay-iters 2000"}, {3, 2000, 1e-4}},
      {{"--lr-decay-iters 50"}, {50, 50, 1e-4}},
      {{"--learning-rate 0.003"}, {100, 2000, 3e-4}},
      {{"--learning-rate 3e-308"}, {100, 2000, 3e-309}},
      {{"--learning-rate 3e-308 --min-lr 2e-309"}, {100, 2000, 2e-309}}};
  for (const auto& [more, expected] : cases) {
    CAPTURE(more);
    CHECK(recipe(more) == expected);
  }
  check_contains(run_well(folder, tiny_train("--out run")).err,
                 {"\nRate:  from 0.003333 to 0.01 at step 2, and 0.001015 at the last; lowest "
                  "0.001015.\n"});
  check_contains(run_well(folder, tiny_train("--out warm --max-iters 2")).err,
                 {"\nRate:  from 0.003333 to 0.006667 at step 1, and 0.006667 at the last; lowest "
                  "0.003333.\n"});
}

TEST_CASE("xgrad: more threads than are of use, and a batch that takes minutes") {
  const TinyFolder folder;
  const std::size_t most = 4 * xgrad::num_processors();
  const std::string used = fmt::format(": {} threads are used, four for each of the ", most);
  const Result threads = ran(folder, tiny_train("--dry-run --threads 1024"));
  check_contains(threads.err, {"xgrad: --threads 1024" + used});
  check_contains(threads.out, {fmt::format(" on {} threads, seed", most)});
  for (const char* const n : {"1024", "99999999999999999999", "-1"}) {  // the last is none
    Process process(folder, tiny_train({"--dry-run"}), [n] { ::setenv("OMP_NUM_THREADS", n, 1); });
    const std::string said = process.wait().err;
    CHECK((said.find("OMP_NUM_THREADS " + (n + used)) != said.npos) == (n[0] != '-'));
    // (oneDNN's OpenMP has a line of its own for -1.)
    CHECK((said.find("xgrad: OMP_NUM_THREADS") != said.npos) == (n[0] != '-'));
  }
  // A few blocks suffice to estimate the time of 65,536.
  Process large(folder, tiny_train("--dry-run --batch-size 65536 --n-embd 128 --threads 1"));
  wait_until([&] { return large.ended() || large.processor_time() > 20; });
  CHECK(large.ended());
  check_contains(large.wait().out, {"(65,536 blocks of 8)", "\nTime:  about "});
}
