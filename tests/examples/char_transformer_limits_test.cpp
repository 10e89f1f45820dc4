// The largest and the smallest: what does not fit into memory, and sizes of one.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>
#include <xgrad/autograd/sanitizers.hpp>

#include "examples/char_transformer_run.hpp"

#if !XGRAD_SANITIZER  // they take all addresses
TEST_CASE("char_transformer: not enough memory") {
  const TinyFolder folder;
  const Arguments huge = {"train", "--data",    "text", "--n-embd",  "65536", "--n-head",
                          "1",     "--n-layer", "2",    "--threads", "1",     "--check-memory"};
  for (const char* const look : {"true", "false"}) {
    Arguments arguments = huge;
    arguments.push_back(look);
    const Result result = Process(folder, arguments, limited(RLIMIT_AS, rlim_t{16} << 30)).wait();
    INFO(result.out << result.err);
    CHECK(result.code == 1);
    check_contains(result.err, {"not enough memory: ", "the weights",
                                "about 2.89 TB (--n-layer 2, --n-embd 65536)",
                                " GB (--batch-size 12, --block-size 64)"});
    const bool refused = result.err.find("--check-memory false tries") != std::string::npos;
    CHECK(refused == (std::string(look) == "true"));
    CHECK_FALSE(std::filesystem::exists(folder / "runs"));
  }
}
#endif

TEST_CASE("char_transformer: a text that is larger than memory is not read") {
  const TinyFolder folder;
  std::filesystem::resize_file(folder / "text", std::uintmax_t{1} << 42);
  check_refused(folder, tiny_train(), 1, {"not enough memory: ", "text about 4.4 TB, "});
}

#if !XGRAD_SANITIZER
// Measures, and so is not among the tests: what two threads hold at once depends on the moment.
TEST_CASE("char_transformer: the memory that it says it needs is what it takes", "[.memory]") {
  const TinyFolder folder;
  write_bytes(folder / "enough", std::string(20000, 'a'));
  std::filesystem::resize_file(folder / "text", std::uintmax_t{1} << 42);
  const auto check = [&](const Arguments& recipe) {
    const auto arguments = [&](const char* text) {
      Arguments all = tiny_train({"--threads", "2", "--max-iters", "3", "--data", text});
      all = overridden(all, recipe);
      return all;
    };
    const std::string said = run(folder, arguments("text")).err;
    const auto megabytes = [&](const std::string& key) {
      return std::stod(said.substr(said.find(key) + key.size()));
    };
    const double needed = megabytes("AdamW keeps about ") + megabytes("a batch about ");
    const Result result = run_well(folder, arguments("enough"));
    const double took = static_cast<double>(result.peak) / 1e6 - 10;  // the program itself
    CAPTURE(said, needed, took);
    CHECK(took < 1.1 * needed);
    CHECK(took > needed / 1.3);
  };
  check({"--n-embd", "512"});                                               // wide
  check({"--n-embd", "64", "--block-size", "1024", "--batch-size", "16"});  // long
  check({"--n-embd", "64", "--n-layer", "12", "--batch-size", "256"});      // deep, many
  check({"--n-embd", "64", "--n-layer", "12", "--batch-size", "256", "--dropout", "0.1"});
}
#endif

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
                  {std::string(text) + ": the training split has ", "a block of 1 needs one more",
                   "give at least 11 characters"});
}
