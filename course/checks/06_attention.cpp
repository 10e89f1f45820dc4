// Stage 6: attention in six lines
// Hint 1: Scores first: one number for each query and each key, a (B, T, S).
// Hint 2: softmax along the keys, so that each query's weights sum to 1.
// Hint 3: matmul(softmax(matmul(q, transpose(k, -2, -1)) / √D, -1), v); D is q.size(-1).
// Next: course/pages/07_masks.md

#include "../checks.hpp"

#include "exercises/06_attention.cpp"

namespace learn {

TEST_CASE("my_attention") {
  using exercise::random;
  // All sizes differ, so that a transposed operand shows; before them equal ones.
  check_op("my_attention", lent(my_attention),
           [](const Inputs& x) { return plain_attention(x[0], x[1], x[2], false); },
           {{random({2, 3, 3}, 1), random({2, 3, 3}, 2), random({2, 3, 3}, 3)},
            {random({2, 3, 4}, 1), random({2, 5, 4}, 2), random({2, 5, 6}, 3)},
            {random({3, 1, 2}, 4), random({3, 4, 2}, 5), random({3, 4, 1}, 6)},
            {random({1, 6, 4}, 7), random({1, 1, 4}, 8), random({1, 1, 3}, 9)},
            {random({1, 5, 2}, 7, 3), random({1, 5, 2}, 8, 3), random({1, 5, 2}, 9)}});
}

}  // namespace learn
