// Stage 11.5: a bias with a backward of its own
// Hint 1: The message names a factor.  How many rows does the bias serve?
// Hint 2: A value that is used n times gathers n gradients: they add up.
// Hint 3: sum, not mean
// Next: `scripts/learn check 11.6`

#include "../../checks.hpp"

#include "exercises/mistakes/05_bias.cpp"

TEST_CASE("attention") { learn::check_explained(attention); }
