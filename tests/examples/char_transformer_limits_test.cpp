// Sizes of one, and 20,000 steps.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "examples/char_transformer_run.hpp"

#ifdef __linux__
TEST_CASE("char_transformer: memory stays flat over 20,000 steps", "[.soak]") {
  const TinyFolder folder;
  Process process(folder, tiny_train({"--max-iters", "20000", "--dropout", "0.1", "--keep", "3",
                                      "--eval-interval", "500"}));
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

TEST_CASE("char_transformer: sizes of one") {
  const TinyFolder folder;
  write_bytes(folder / "same", std::string(200, 'a'));
  const std::vector<Arguments> smallest = {
      {"--max-iters", "0"},
      {"--max-iters", "1"},
      {"--block-size", "1"},
      {"--batch-size", "1"},
      {"--data", "same"},
      {"--n-embd", "1", "--n-head", "1"},
      {"--data", "same", "--block-size", "1", "--batch-size", "1", "--n-embd", "1", "--n-head", "1",
       "--dropout", "0.5", "--max-iters", "3", "--eval-iters", "1", "--eval-interval", "1"},
  };
  for (std::size_t i = 0; i < smallest.size(); ++i) {
    const std::string out = "run" + std::to_string(i);
    Arguments arguments = tiny_train({"--out", out});
    arguments = overridden(arguments, smallest[i]);
    run_well(folder, arguments);
    const std::string checkpoint = out + "/checkpoint.safetensors";
    run_well(folder, {"eval", "--checkpoint", checkpoint});
    const std::string text = run_well(folder, {"sample", "--checkpoint", checkpoint}).out;
    CHECK(text.size() == 502);  // what it begins with, 500 characters, a newline
  }
  // The loss where there is nothing to choose.
  CHECK_THAT(run_well(folder, {"eval", "--checkpoint", "run6/checkpoint.safetensors"}).out,
             StartsWith("val_loss 0"));
}

TEST_CASE("char_transformer: texts of one character and of two") {
  const TinyFolder folder;
  write_bytes(folder / "one", "a");
  write_bytes(folder / "two", "ab");
  for (const char* const text : {"one", "two"})
    check_refused(folder, {"train", "--data", text, "--block-size", "1"}, 1,
                  {fmt::format("the training split of {}: ", text), "too few for --block-size 1"});
}
