#pragma once
// What the two attention ops share: their settings, dropout, and the op and its derivative composed
// of catalogue ops.

#include <optional>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::detail {

/// What an attention is besides its Tensors.
struct AttentionSetup {
  bool causal;
  double scale;
  std::optional<Mask> allowed;  ///< (..., T or 1, S)
  std::optional<Mask> keep;     ///< (..., T, S), after dropout
  double keep_scale = 1;
  std::size_t causal_offset = 0;
};

/// Draws what dropout keeps of weights of this shape, masked ones included, as torch.dropout does.
/// ValueError naming op unless 0 <= p <= 1.
void draw_dropout(const char* op, double p, const Shape& weights, AttentionSetup& setup);

struct AttentionTensors {
  Tensor q, k, v, bias;  ///< (..., T, D), (..., S, D), (..., S, Dv), (..., T, S) or undefined
};
/// softmax(q kᵀ * scale + bias) v.
Tensor compose_attention(const AttentionSetup& setup, const AttentionTensors& in);
/// The gradients of softmax(q kᵀ * scale + bias) v, not yet summed to the shapes of broadcast
/// operands; g (..., T, Dv) is that of the result.  Differentiable.
AttentionTensors compose_attention_backward(const char* op, const AttentionSetup& setup,
                                            const AttentionTensors& in, const Tensor& g);

}  // namespace xgrad::detail
