// The derivative of attention composed of catalogue ops, and its dropout.

#include <xgrad/autograd/ops/attention.hpp>

#include <algorithm>
#include <limits>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/matmul.hpp>
#include <xgrad/autograd/random.hpp>

namespace xgrad {

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

detail::AttentionTensors detail::compose_attention_backward(const char* op,
                                                            const AttentionSetup& setup,
                                                            const AttentionTensors& in,
                                                            const Tensor& g) {
  const auto& [q, k, v, bias] = in;
  const auto masked = [](const Mask& mask, const Tensor& scores) {
    return where(mask, scores, -std::numeric_limits<double>::infinity());
  };
  const auto drop = [&setup](const Tensor& x) {
    return setup.keep ? where(*setup.keep, x * setup.keep_scale, 0.0) : x;
  };
  Tensor scores = product(op, q, false, k, true) * setup.scale;  // (..., T, S)
  if (bias.defined())
    scores = scores + bias;
  if (setup.allowed)
    scores = masked(*setup.allowed, scores);
  if (setup.causal)
    scores = masked(tril(zeros({q.size(-2), k.size(-2)}) == 0), scores);  // key j <= query i
  const Tensor weights = softmax(scores, -1);                             // (..., T, S)
  const Tensor dw = drop(product(op, g, false, v, true));                 // (..., T, S)
  const Tensor d_scores = weights * (dw - sum(weights * dw, {-1}, true));
  return {product(op, d_scores, false, k, false) * setup.scale,  // (..., T, D)
          product(op, d_scores, true, q, false) * setup.scale,   // (..., S, D)
          product(op, drop(weights), true, g, false),            // (..., S, Dv)
          d_scores};
}

}  // namespace xgrad
