// Stage 11.1: softmax with a backward of its own
// Hint 1: Is this the derivative of y_i in x_i alone, or in all x_j?
// Hint 2: d y_i / d x_j = y_i (1 if i = j, else 0) - y_i y_j.  Multiply by g_i and sum over i.
// Hint 3: y * (g - sum(y * g, {-1}, true))
// Next: `scripts/learn check 11.2`

#include "../../checks.hpp"

#include "exercises/mistakes/01_softmax.cpp"

TEST_CASE("attention") { learn::check_explained(attention); }
