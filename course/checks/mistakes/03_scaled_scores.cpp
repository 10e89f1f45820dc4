// Stage 11.3: scaled scores with a backward of their own
// Hint 1: The message names a factor.  Which size here is its square?
// Hint 2: The backward multiplies by what the forward multiplies by, too.
// Hint 3: Capture scale, and multiply ctx.gradient() by it.
// Next: `scripts/learn check 11.4`

#include "../../checks.hpp"

#include "exercises/mistakes/03_scaled_scores.cpp"

TEST_CASE("attention") { learn::check_explained(attention); }
