// Stage 11.9: ready-made ops, one mistake
// Hint 1: The numbers are right, and in the wrong channels.
// Hint 2: reshape counts the last dimension fastest: which letter is last before it, H or D?
// Hint 3: permute(y, {0, 2, 1, 3})
// Next: `scripts/learn check 11.10`

#include "../../checks.hpp"

#include "exercises/mistakes/09_attention.cpp"

TEST_CASE("attention") { learn::check_compared(attention); }
