// Stage 11.6: heads merged by an op of their own
// Hint 1: The shape is right.  Are the numbers where they belong?
// Hint 2: Undo the steps of the forward in the opposite order: first reshape, then permute.
// Hint 3: permute(reshape(g, {B, T, H, D}), {0, 2, 1, 3})
// Next: `scripts/learn check 11.7`: from here on the forward is wrong

#include "../../checks.hpp"

#include "exercises/mistakes/06_merge_heads.cpp"

TEST_CASE("attention") { learn::check_explained(attention); }
