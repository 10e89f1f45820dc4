// The program's losses compared with PyTorch's (tests/lm/program/curve.py), step by step.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <xgrad/autograd/sanitizers.hpp>
#include <xgrad/lm/program/corpus.hpp>

#include "helpers/paths.hpp"
#include "lm/program/run.hpp"

namespace {

struct Curve {
  Arguments flags;
  std::vector<double> losses;
};

std::vector<Curve> read_curves(const std::string& name) {
  std::vector<Curve> curves;
  std::istringstream file(read_bytes(source_dir + "/tests/lm/program/" + name));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    if (line.starts_with("# --")) {
      words >> word;
      curves.emplace_back();
      while (words >> word)
        curves.back().flags.push_back(word);
    } else if (!line.starts_with("#")) {
      curves.back().losses.push_back(std::stod(line.substr(line.find(',') + 1)));
    }
  }
  return curves;
}

/// Words drawn by a linear congruential generator: the text of the curves.
std::string drawn_text() {
  std::vector<std::string> words;
  std::istringstream list("the old cat sat on a red mat and saw two small dogs run by");
  for (std::string word; list >> word;)
    words.push_back(word);
  std::uint64_t state = 1;
  std::string text;
  for (int line = 0; line < 300; ++line) {
    for (int i = 0; i < 5; ++i) {
      state = (state * 1103515245 + 12345) % (std::uint64_t{1} << 31);
      text += words[(state >> 16) % words.size()] + (i < 4 ? " " : ".\n");
    }
  }
  return text;
}

/// The losses of a run's steps.
std::vector<double> losses_of(const TemporaryFolder& folder, const std::string& text,
                              const std::string& out, const Arguments& flags) {
  write_bytes(folder / "text", text);
  run_well(folder, overridden({"train", "--data", "text", "--out", out}, flags));
  std::istringstream metrics(read_bytes(folder / (out + "/metrics.jsonl")));
  std::vector<double> losses;
  for (std::string line; std::getline(metrics, line);)
    losses.push_back(nlohmann::json::parse(line).at("loss"));
  return losses;
}

}  // namespace

TEST_CASE("xgrad: every loss is PyTorch's", "[golden]") {
  const TemporaryFolder folder;
  const std::vector<Curve> curves = read_curves("curves.csv");
  REQUIRE(curves.size() == 3);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const std::vector<double> losses =
        losses_of(folder, drawn_text(), "run" + std::to_string(i), curves[i].flags);
    REQUIRE(losses.size() == curves[i].losses.size());
    double largest = 0;
    for (std::size_t step = 0; step < losses.size(); ++step) {
      const double expected = curves[i].losses[step];
      largest = std::max(largest, std::abs(losses[step] - expected) / expected);
    }
    INFO("curve " << i << ": largest relative difference " << largest);
    CHECK(losses.size() >= 20);
    CHECK(largest <= 1e-5);
  }
}

TEST_CASE("xgrad: losses in bfloat16 are near those in float32, and PyTorch's", "[golden]") {
  const TemporaryFolder folder;
  const std::string text = corpus::scenes_corpus().text;
  const std::vector<Curve> curves = read_curves("curves_bfloat16.csv");
  REQUIRE(curves.size() == 1);
  // Sanitizers see in its first steps what they see in all.
  const std::size_t steps = XGRAD_SANITIZER ? 20 : 300;
  const Arguments flags = overridden(
      curves[0].flags,
      {"--max-iters", std::to_string(steps), "--lr-decay-iters", "300", "--warmup-iters", "15"});
  const std::vector<double> rounded = losses_of(folder, text, "bfloat16", flags);
  const std::vector<double> exact =
      losses_of(folder, text, "float32", overridden(flags, {"--dtype", "float32"}));
  REQUIRE(rounded.size() == steps);
  REQUIRE(exact.size() == steps);
  double from_float32 = 0, from_pytorch = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    from_float32 = std::max(from_float32, std::abs(rounded[step] - exact[step]));
    from_pytorch = std::max(from_pytorch, std::abs(rounded[step] - curves[0].losses[step]));
  }
  CAPTURE(from_float32, from_pytorch);
  CHECK(from_float32 > 0);
  CHECK(from_float32 <= 0.02);
  CHECK(from_pytorch <= 0.02);
}
