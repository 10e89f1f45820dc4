#pragma once

#include <cstddef>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

/// Which two channels are rotated together.
enum class RotaryPairs {
  half,        ///< i and i + D / 2, as Llama's rotate_half and GPT-NeoX
  interleaved  ///< 2i and 2i + 1, as the paper and GPT-J
};
struct RotaryOptions {
  double theta = 10000;
  RotaryPairs pairs = RotaryPairs::half;
  /// What all frequencies are divided by, for texts longer than those of the training ("linear").
  double factor = 1;
  /// Of Llama 3: if n is not 0, a pair that turns more than high_freq_factor times in n positions
  /// keeps its frequency, one that turns fewer than low_freq_factor times has it divided, and those
  /// between go from the one to the other.
  Size original_max_position_embeddings = 0;
  double low_freq_factor = 1, high_freq_factor = 4;
};

/// Rotates queries and keys by their positions p, so that their products depend on distances: the
/// pair i of D / 2, (a, b), becomes (a cos - b sin, b cos + a sin) of p theta^(-2i / D).  Angles
/// are float64's whatever x is.  Su et al., 2021.  Made once for a pass, used in every layer:
///
///   const nn::RotaryEmbedding rotate(D, arange_indices(0, T));
///   y = scaled_dot_product_attention(rotate(q), rotate(k), v, {.is_causal = true});
class RotaryEmbedding {
 public:
  /// Of heads of D channels, at positions (T,), or any shape that broadcasts to that of x without
  /// D: (B, 1, T) where they differ within the batch.  ValueError unless D is even, theta and
  /// factor are positive and low_freq_factor is below high_freq_factor.
  RotaryEmbedding(Size head_dim, const Indices& positions, const RotaryOptions& options = {});
  Tensor operator()(const Tensor& x) const;  ///< (..., T, D) -> (..., T, D)

 private:
  RotaryPairs pairs_;
  Tensor cos_, sin_;  // (..., T, D / 2), float64
};

}  // namespace xgrad::nn
