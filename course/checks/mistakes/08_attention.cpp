// Stage 11.8: ready-made ops, one mistake
// Hint 1: Does each row of the weights still sum to 1?
// Hint 2: The sum that softmax divides by must not contain the future: hide it before.
// Hint 3: softmax(hide_future(scores), -1)
// Next: `scripts/learn check 11.9`

#include "../../checks.hpp"

#include "exercises/mistakes/08_attention.cpp"

TEST_CASE("attention") { learn::check_compared(attention); }
