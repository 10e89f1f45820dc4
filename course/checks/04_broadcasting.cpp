// Stage 4: broadcasting and its gradient
// Hint 1: bias has 4 elements and x has 24: how often is bias[0] used?
// Hint 2: A number that is used several times gathers that many gradients: they are added up.
// Hint 3: sum(g, {0, 1}) adds over the first two dimensions and leaves (C,).
// Next: course/pages/05_softmax.md: every output depends on every input

#include "../checks.hpp"

#include "exercises/04_broadcasting.cpp"

namespace learn {

TEST_CASE("my_add") {
  using exercise::random;
  check_op(
      "my_add", [sum = lent(my_add)](const Inputs& x) { return tanh(sum(x)); },
      [](const Inputs& x) { return tanh(x[0] + x[1]); },
      {{random({2, 3, 4}, 1), random({4}, 2)},
       {random({3, 1, 2}, 3), random({2}, 4)},
       {random({1, 5, 1}, 5), random({1}, 6)}});
}

}  // namespace learn
