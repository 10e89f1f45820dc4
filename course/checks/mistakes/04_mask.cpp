// Stage 11.4: a mask with a backward of its own
// Hint 1: Does y_ts depend on x_ts where it is hidden?
// Hint 2: Softmax gives nothing back to a weight of 0, so the gradient of the whole is right by
//   luck, and gradcheck() is silent.  In front of another function it would be wrong.
// Hint 3: masked_fill(ctx.gradient(), hidden, 0)
// Next: `scripts/learn check 11.5`

#include "../../checks.hpp"

#include "exercises/mistakes/04_mask.cpp"

TEST_CASE("attention") { learn::check_explained(attention); }
