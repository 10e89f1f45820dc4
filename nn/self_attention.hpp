#pragma once

#include <cstddef>
#include <optional>
#include <xgrad/nn/linear.hpp>

namespace xgrad::nn {

/// What an attention layer returns.
struct Attended {
  Tensor output;
  Tensor weights;  ///< each query's weights over the keys; undefined if they were not asked for
};

struct SelfAttentionOptions {
  std::optional<Size> d_k = {};   ///< width of queries and keys; d_model unless given
  std::optional<Size> d_v = {};   ///< width of values; d_model unless given
  bool output_projection = true;  ///< without one, the output has width d_v
};

/// Self-attention of one head, written out so that it can be read next to the formula
/// softmax(Q Kᵀ / sqrt(d_k)) V.  Vaswani et al., 2017.
struct SelfAttention {
  Linear W_q, W_k, W_v;       ///< without bias; drawn in this order
  std::optional<Linear> W_o;  ///< without bias
  double scale;               ///< 1 / sqrt(d_k)

  SelfAttention(Size d_model, const SelfAttentionOptions& options = {});

  struct Call {
    std::optional<Mask> mask = {};  ///< true where attention is allowed; broadcasts to (B, T, T)
    bool is_causal = false;         ///< position t sees positions 0 ... t
  };
  /// x (B, T, C) or (T, C) -> output (B, T, C), weights (B, T, T).  A position to which all are
  /// forbidden gets weights of zero.
  Attended operator()(const Tensor& x, const Call& call) const;
  Attended operator()(const Tensor& x) const { return (*this)(x, Call{}); }

  static void visit(auto& self, auto&& v) {
    v("W_q", self.W_q);
    v("W_k", self.W_k);
    v("W_v", self.W_v);
    v("W_o", self.W_o);
  }
};

}  // namespace xgrad::nn
