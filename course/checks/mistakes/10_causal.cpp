// Stage 11.10: causal attention, one mistake
// Hint 1: Draw the mask for T = 3.  Which keys does query 0 see?
// Hint 2: tril(x, k) keeps k diagonals above the main one.
// Hint 3: tril(ones({T, T})) == 0
// Next: `scripts/learn check 11.11`

#include "../../checks.hpp"

#include "exercises/mistakes/10_causal.cpp"

namespace learn {

TEST_CASE("attention") {
  const Inputs in = exercise::inputs();
  check_future([&](const Tensor& x) { return attention({x, in[1]}); }, in[0]);
  check_values("attention", attention, exercise::reference, {in[0], in[1]});
  check_gradient("attention", attention, {in[0], in[1]});
}

}  // namespace learn
