// Attention and its derivative composed of catalogue ops, and its dropout.

#include <xgrad/autograd/ops/attention.hpp>

#include <algorithm>
#include <limits>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/matmul.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad {
namespace {

// (..., T, S), before dropout; scaled is q kᵀ * scale
Tensor attention_weights(const detail::AttentionSetup& setup, const Tensor& scaled,
                         const Tensor& bias) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  Tensor scores = bias.defined() ? scaled + bias : scaled;
  if (setup.allowed)
    scores = masked_fill(scores, ~*setup.allowed, hidden);
  if (setup.causal) {  // key j <= query i + causal_offset
    const Size t = scores.size(-2), s = scores.size(-1);
    const auto diagonal = static_cast<std::int64_t>(std::min<std::size_t>(setup.causal_offset, s));
    scores = masked_fill(scores, ~tril(zeros({t, s}) == 0, diagonal), hidden);
  }
  return softmax(scores, -1);
}

Tensor drop(const detail::AttentionSetup& setup, const Tensor& x) {
  return setup.keep ? where(*setup.keep, x * setup.keep_scale, 0.0) : x;
}

}  // namespace

void detail::draw_dropout(const char* op, double p, const Shape& weights, AttentionSetup& setup) {
  check<ValueError>(p >= 0 && p <= 1, "{}: dropout_p {} is not between 0 and 1", op, p);
  setup.keep_scale = p < 1 ? 1 / (1 - p) : 0;
  if (p == 0)
    return;
  auto keep = empty_array<bool>(weights);
  std::vector<float> draws(std::min<std::size_t>(4096, keep.size()));  // smaller than the mask
  for (std::size_t i = 0; i < keep.size(); i += draws.size()) {
    const std::span some(draws.data(), std::min(draws.size(), keep.size() - i));
    fill_dropout(some, p, default_generator());
    std::ranges::transform(some, keep.data() + i, [](float scale) { return scale != 0; });
  }
  setup.keep = Mask(std::move(keep));
}

Tensor detail::compose_attention(const AttentionSetup& setup, const AttentionTensors& in) {
  const Tensor scaled = matmul(in.q, transpose(in.k, -2, -1)) * setup.scale;
  return matmul(drop(setup, attention_weights(setup, scaled, in.bias)), in.v);
}

detail::AttentionTensors detail::compose_attention_backward(const char* op,
                                                            const AttentionSetup& setup,
                                                            const AttentionTensors& in,
                                                            const Tensor& g) {
  const auto& [q, k, v, bias] = in;
  const Tensor weights =
      attention_weights(setup, product(op, q, false, k, true) * setup.scale, bias);
  const Tensor dw = drop(setup, product(op, g, false, v, true));  // (..., T, S)
  const Tensor d_scores = weights * (dw - sum(weights * dw, {-1}, true));
  return {product(op, d_scores, false, k, false) * setup.scale,  // (..., T, D)
          product(op, d_scores, true, q, false) * setup.scale,   // (..., S, D)
          product(op, drop(setup, weights), true, g, false),     // (..., S, Dv)
          d_scores};
}

}  // namespace xgrad
