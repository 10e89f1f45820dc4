// Stage 11.11: dropout on the weights, one mistake
// Hint 1: Without dropout each row of the weights sums to 1.  And with it, on average?
// Hint 2: A kept weight makes up for those that are dropped.
// Hint 3: x * keep / (1 - p)
// Next: `scripts/learn check 11.12`

#include <cmath>
#include <xgrad/autograd/check/function_checks.hpp>

#include "../../checks.hpp"

#include "exercises/mistakes/11_dropout.cpp"

namespace learn {

using namespace xgrad;

namespace {

// The weights of `reference`.
Tensor weights_of_reference(const Inputs& in) {
  using namespace exercise;
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);
  const Tensor q = split_heads(parts[0]), k = split_heads(parts[1]);
  return softmax(hide_future(matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D})), -1);
}

}  // namespace

TEST_CASE("attention_weights") {
  const Inputs in = exercise::inputs();
  const auto without = [](const Inputs& x) { return attention_weights(x, 0); };
  const Tensor right = weights_of_reference(in);
  check_values("attention_weights with p = 0, which drops nothing", without, weights_of_reference,
               {in[0], in[1]});
  const auto mean = check_dropout_mean([&] { return attention_weights(in, 0.2); }, right);
  expect(bool(mean), mean.message);
  check_drops("attention_weights", [&] { return attention_weights(in, 0.4); }, right, 0.4);
  check_gradient("attention_weights", without, {in[0], in[1]});
  check_gradient("attention_weights", [](const Inputs& x) { return attention_weights(x, 0.4); },
                 {in[0], in[1]});
}

}  // namespace learn
