// Stage 2: a graph
// Hint 1: Draw it: which arrows lead from a to y?  There are two.
// Hint 2: Slopes are multiplied along a path, and added over several paths.
// Hint 3: Through a b the slope along a is b; through sin(a) it is cos(a).
// Next: course/pages/03_engine.md: a loop that does this for any graph

#include "../checks.hpp"

#include "exercises/02_graph.cpp"

namespace learn {

TEST_CASE("gradients") {
  check_slopes(
      "gradients", {"a", "b"}, {{2, 3}, {0, 1}, {-1, 0.5}, {4, -2}, {-7, -5}},
      [](const auto& x) { return x[0] * x[1] + std::sin(x[0]); },
      [](const auto& x) {
        const auto [by_a, by_b] = gradients(x[0], x[1]);
        return std::vector{by_a, by_b};
      });
}

}  // namespace learn
