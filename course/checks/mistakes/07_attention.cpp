// Stage 11.7: ready-made ops, one mistake
// Hint 1: gradcheck() finds nothing: this is the right gradient of another function.
// Hint 2: The message names a factor.  Which size here is its square?
// Hint 3: Divide the scores by √D.
// Next: `scripts/learn check 11.8`

#include "../../checks.hpp"

#include "exercises/mistakes/07_attention.cpp"

TEST_CASE("attention") { learn::check_compared(attention); }
