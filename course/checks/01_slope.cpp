// Stage 1: a number and its slope
// Hint 1: A sum has the sum of the slopes: take x³ and -2x one at a time.
// Hint 2: x³ grows 3 x² times as fast as x does.
// Hint 3: The slope of -2x is -2 wherever you are.
// Next: course/pages/02_graph.md: several numbers, several paths

#include "../checks.hpp"

#include "exercises/01_slope.cpp"

namespace learn {

TEST_CASE("slope") {
  check_slopes(
      "slope", {"x"}, {{0}, {1}, {-2}, {0.5}, {7}, {-11}},
      [](const auto& x) { return x[0] * x[0] * x[0] - 2 * x[0]; },
      [](const auto& x) { return std::vector{slope(x[0])}; });
}

}  // namespace learn
