// Stage 11.2: scores with a backward of their own
// Hint 1: Write the letters under each factor.  Here S = T = D, so a wrong shape fits.
// Hint 2: The gradient of k_sd is Σ_t g_ts q_td: s comes first, so g is transposed.
// Hint 3: matmul(transpose(g, -2, -1), q.tensor())
// Next: `scripts/learn check 11.3`

#include "../../checks.hpp"

#include "exercises/mistakes/02_scores.cpp"

TEST_CASE("attention") { learn::check_explained(attention); }
