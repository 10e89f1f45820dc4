#include <xgrad/nn/self_attention.hpp>

#include <cmath>
#include <limits>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/masks.hpp>

namespace xgrad::nn {

SelfAttention::SelfAttention(Size d_model, const SelfAttentionOptions& options)
    : W_q(d_model, options.d_k.value_or(d_model), false),
      W_k(d_model, options.d_k.value_or(d_model), false),
      W_v(d_model, options.d_v.value_or(d_model), false),
      scale(1 / std::sqrt(static_cast<double>(options.d_k.value_or(d_model)))) {
  check<ValueError>(options.d_k != 0, "SelfAttention: d_k is 0");
  if (options.output_projection)
    W_o.emplace(options.d_v.value_or(d_model), d_model, false);
}

Attended SelfAttention::operator()(const Tensor& x, const Call& call) const {
  check<ShapeError>(x.dim() >= 2, "SelfAttention: x is {}; it must be (B, T, C) or (T, C)",
                    to_string(x.shape()));
  const Tensor q = W_q(x);                                 // (B, T, d_k)
  const Tensor k = W_k(x);                                 // (B, T, d_k)
  const Tensor v = W_v(x);                                 // (B, T, d_v)
  Tensor scores = matmul(q, k.transpose(-2, -1)) * scale;  // (B, T, T)
  constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
  if (call.mask.has_value() &&
      broadcast_shapes(scores.shape(), call.mask->shape(), "SelfAttention") != scores.shape())
    fail<ShapeError>("SelfAttention: mask {} does not broadcast to the scores {}",
                     to_string(call.mask->shape()), to_string(scores.shape()));
  if (call.mask.has_value())
    scores = masked_fill(scores, ~*call.mask, minus_infinity);
  if (call.is_causal)
    scores = masked_fill(scores, future(x.size(-2), x.size(-2)), minus_infinity);
  const Tensor weights = softmax(scores, -1);  // (B, T, T)
  const Tensor y = matmul(weights, v);         // (B, T, d_v)
  return {W_o.has_value() ? (*W_o)(y) : y, weights};
}

}  // namespace xgrad::nn
