// The program's losses compared with PyTorch's (tests/lm/program/curve.py), step by step.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "helpers/paths.hpp"
#include "lm/program/run.hpp"

namespace {

struct Curve {
  Arguments flags;
  std::vector<double> losses;
};

std::vector<Curve> read_curves() {
  std::vector<Curve> curves;
  std::istringstream file(read_bytes(source_dir + "/tests/lm/program/curves.csv"));
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

}  // namespace

TEST_CASE("xgrad: every loss is PyTorch's", "[golden]") {
  const TemporaryFolder folder;
  write_bytes(folder / "text", drawn_text());
  const std::vector<Curve> curves = read_curves();
  REQUIRE(curves.size() == 3);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const std::string out = "run" + std::to_string(i);
    Arguments arguments = {"train", "--data", "text", "--out", out};
    arguments = overridden(arguments, curves[i].flags);
    run_well(folder, arguments);
    std::istringstream metrics(read_bytes(folder / (out + "/metrics.jsonl")));
    double largest = 0;
    std::size_t step = 0;
    for (std::string line; std::getline(metrics, line); ++step) {
      REQUIRE(step < curves[i].losses.size());
      const double loss = nlohmann::json::parse(line).at("loss");
      const double expected = curves[i].losses[step];
      largest = std::max(largest, std::abs(loss - expected) / expected);
    }
    INFO("curve " << i << ": largest relative difference " << largest);
    CHECK(step == curves[i].losses.size());
    CHECK(step >= 20);
    CHECK(largest <= 1e-5);
  }
}
