// Stage 7: masks
// Hint 1: Which entries of the scores (T, T) belong to a key later than the query?
// Hint 2: exp(-inf) is 0: hide scores before softmax, and the rest still sums to 1.
// Hint 3: masked_fill(scores, nn::future(T, T), -INFINITY)
// Next: course/pages/08_heads.md

#include "../checks.hpp"

#include "exercises/07_masks.cpp"

namespace learn {

TEST_CASE("my_causal_attention") {
  using exercise::random;
  const Inputs in = {random({2, 4, 3}, 1), random({2, 4, 3}, 2), random({2, 4, 3}, 3)};
  const Tensor y = my_causal_attention(in[0].detach(), in[1].detach(), in[2].detach());
  if (y.defined() && y.shape() == in[2].shape())  // otherwise check_op() reports it
    check_future(
        [](const Tensor& x) { return my_causal_attention(x, -x, x); }, in[0],
        "my_causal_attention: ",
        "\n\nA position must not see those after it: at that time they are not yet known.");
  check_op("my_causal_attention", lent(my_causal_attention),
           [](const Inputs& x) { return plain_attention(x[0], x[1], x[2], true); },
           {in,
            {random({3, 5, 2}, 4), random({3, 5, 2}, 5), random({3, 5, 2}, 6)},
            {random({1, 1, 4}, 7), random({1, 1, 4}, 8), random({1, 1, 4}, 9)},
            {random({1, 2, 1}, 7), random({1, 2, 1}, 8), random({1, 2, 1}, 9)}});
}

}  // namespace learn
