// Stage 11.12: causal attention with dropout, one mistake
// Hint 1: Follow both ways through the function, that of p = 0 and the other: what do they share?
// Hint 2: One branch must do to the scores what the other does as well.
// Hint 3: Hide the future in one place, before the branch.
// Next: course/pages/12_second_derivatives.md

#include "../../checks.hpp"

#include "exercises/mistakes/12_dropout_mask.cpp"

namespace learn {

using namespace xgrad;

namespace {

// If v is the same in all channels of a head, so is the result, whichever weights are dropped.
void check_channels(const Inputs& in) {
  using namespace exercise;
  const Tensor v = narrow(in[1].detach(), 0, 2 * C, C);
  const Tensor first = narrow(reshape(v, {H, D, C}), 1, 0, 1);
  const Tensor weight =
      cat({narrow(in[1].detach(), 0, 0, 2 * C), reshape(expand(first, {H, D, C}), {C, C})}, 0);
  const Tensor heads = reshape(dropped_attention({in[0].detach(), weight}, 0.2), {B, T, H, D});
  const Tensor apart = amax(heads, {-1}) - amin(heads, {-1});
  expect(amax(reshape(apart, {B * T * H}), {0}).item() < 1e-9,
         "dropped_attention: with dropout p = 0.2 the channels of a head are dropped one by one\n\n"
         "Dropout is for the weights: where one is dropped, all channels of a head lose that "
         "position together. Yours drops numbers of v, or of the result.");
}

// If v is the one-hot position, the result is the weights.
void check_weights() {
  using namespace exercise;
  static_assert(D == T);
  const Tensor one_hot = eye(T, DType::float64), rest = zeros({D, C - D}, DType::float64);
  const Tensor x =
      cat({expand(one_hot, {B, T, T}), exercise::random({B, T, C - T}, 5).detach()}, -1);
  const Tensor v = cat({one_hot, rest}, -1);
  const Tensor weight = cat({exercise::random({2 * C, C}, 6).detach(), v, v}, 0);
  check_drops(
      "dropped_attention", [&] { return dropped_attention({x, weight}, 0.4); },
      dropped_attention({x, weight}, 0), 0.4);
}

}  // namespace

TEST_CASE("dropped_attention") {
  const Inputs in = exercise::inputs();
  for (const double p : {0.0, 0.2})
    check_future([&](const Tensor& x) { return dropped_attention({x, in[1]}, p); }, in[0],
                 fmt::format("with dropout p = {}: ", p),
                 p > 0 ? "\n\nWithout dropout it does not: a test in evaluation would have seen "
                         "nothing."
                       : "");
  const auto without = [](const Inputs& x) { return dropped_attention(x, 0); };
  check_values("dropped_attention with p = 0, which drops nothing", without, exercise::reference,
               {in[0], in[1]});
  check_channels(in);
  check_weights();
  check_gradient("dropped_attention", without, {in[0], in[1]});
  check_gradient("dropped_attention", [](const Inputs& x) { return dropped_attention(x, 0.4); },
                 {in[0], in[1]});
}

}  // namespace learn
