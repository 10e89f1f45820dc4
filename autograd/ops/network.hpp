#pragma once
// Norms, dropout, losses and attention.  Part of the catalogue: include ops.hpp.

#include <cstdint>
#include <optional>
#include <type_traits>
#include "../tensor.hpp"

namespace xgrad {

class Generator;
Generator& default_generator();  // random.hpp

// ---- layer norms and dropout (ops/norm.cpp) ----

/// (x - mean) / sqrt(biased variance + eps) * weight + bias over the last normalized_shape.size()
/// dimensions; weight and bias have that shape or are undefined.  Precise for any mean, and if
/// squares overflow.  Ba, Kiros and Hinton, 2016.
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * weight; eps defaults to the dtype's epsilon, as in PyTorch.  Zhang
/// and Sennrich, 2019.
Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = std::nullopt);
/// In training, keeps each element with probability 1 - p, scaled by 1 / (1 - p); else x.  Draws as
/// PyTorch does.
Tensor dropout(const Tensor& x, double p, bool training = true,
               Generator& generator = default_generator());

// ---- losses (ops/loss.cpp) ----

enum class Reduction { mean, sum, none };  ///< {} is mean, as in PyTorch
struct CrossEntropyOptions {
  Tensor weight = {};  ///< (V,) or undefined: rescales each class
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;  ///< (1 - e) * nll + e / V * sum(-log p)
  Reduction reduction = Reduction::mean;
};
/// -log softmax(x)[target]: x (N, V) or (V) or (N, V, d1, ...), target (N) or () or (N, d1, ...).
/// The mean is over targets that are not ignored, weighted by class.
Tensor cross_entropy(const Tensor& x, const Indices& target,
                     const CrossEntropyOptions& options = {});
/// -sum(target * log softmax(x)), target probabilities of x's shape; the mean is over N.
Tensor cross_entropy(const Tensor& x, const Tensor& target,
                     const CrossEntropyOptions& options = {});
/// cross_entropy(linear(x, linear_weight, linear_bias), target, options): x (N, K) or (K),
/// linear_weight (V, K), linear_bias (V) or undefined, target (N) or ().  The forward makes the
/// gradients, and logits by blocks of rows; reduction none and create_graph make all of them.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& linear_weight, const Indices& target,
                            const Tensor& linear_bias = {},
                            const CrossEntropyOptions& options = {});
struct NllLossOptions {
  Tensor weight = {};
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
Tensor nll_loss(const Tensor& log_p, const Indices& target, const NllLossOptions& options = {});
/// (x - target)^2; requires equal shapes, where PyTorch would broadcast with a warning.
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
// The losses below require equal shapes, too.
/// |x - target|; gradient 0 where they are equal.
Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
struct HuberLossOptions {
  Reduction reduction = Reduction::mean;
  double delta = 1;
};
/// d^2 / 2 for d = |x - target| up to delta, else delta * (d - delta / 2).  ValueError unless delta
/// > 0.
Tensor huber_loss(const Tensor& x, const Tensor& target, const HuberLossOptions& options = {});
struct SmoothL1LossOptions {
  Reduction reduction = Reduction::mean;
  double beta = 1;
};
/// huber_loss with delta = beta, divided by beta; l1_loss if beta is 0.  ValueError if beta < 0.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target,
                      const SmoothL1LossOptions& options = {});
struct KLDivLossOptions {
  Reduction reduction = Reduction::mean;
  bool log_target = false;
};
/// target * (log(target) - x), of x = log q; where target is 0 it is 0, with gradient -x by target
/// (PyTorch's: NaN); with log_target, exp(target) * (target - x).  The mean is over all elements;
/// PyTorch's "batchmean" is the sum / x.size(0).
Tensor kl_div(const Tensor& x, const Tensor& target, const KLDivLossOptions& options = {});
struct BinaryCrossEntropyOptions {
  Tensor weight = {};  ///< undefined, or broadcasts to x's shape: rescales each element
  Reduction reduction = Reduction::mean;
  Tensor pos_weight = {};  ///< the same, times target; of logits alone, else ValueError
};
/// -(target * log(x) + (1 - target) * log(1 - x)), with logarithms of at least -100.  The gradient
/// of x is (x - target) / max(x (1 - x), 1e-12); that of target has the same logarithms (PyTorch's
/// is infinite at 0 and 1).  ValueError unless x and target are within [0, 1].
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target,
                            const BinaryCrossEntropyOptions& options = {});
/// The same of sigmoid(x), for x of any size; pos_weight multiplies target and not 1 - target.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        const BinaryCrossEntropyOptions& options = {});

// ---- attention (ops/attention.cpp) ----

struct AttentionOptions {
  bool is_causal = false;  ///< position t sees keys 0 ... t
  double dropout_p = 0;    ///< of attention weights; active whenever it is not 0, as in PyTorch
  std::optional<double> scale = {};  ///< 1 / sqrt(D) by default
  /// With is_causal: position t sees keys 0 ... t + causal_offset.  S - T puts the queries at the
  /// last positions (PyTorch's causal_lower_right); if it is negative, the first queries see no key
  /// and give zeros.  ValueError without is_causal.
  Size causal_offset = 0;
  /// With is_causal: the first key that each query sees, (..., T) as the scores without S; 0 and
  /// below: from key 0 on.  Sliding windows, documents in one sequence and padding on the left are
  /// such keys.  ValueError without is_causal.
  std::optional<Indices> first_key = {};
  /// q has n times as many heads, the third dimension from the end, as k and v: each head of k and
  /// v serves n consecutive heads of q.  Nothing is copied.  Ainslie et al., 2023.
  bool enable_gqa = false;
  /// If it is c and not 0, c tanh(s / c) stands for each score s = q kᵀ * scale, before the mask:
  /// no score is beyond c (Gemma 2).  ValueError if it is negative.
  double softcap = 0;
};
/// softmax(q kᵀ * scale + mask) v: q (..., T, D), k (..., S, D), v (..., S, Dv) -> (..., T, Dv);
/// batch dimensions broadcast.  A boolean mask is true where attention is allowed; an additive one
/// is added to the scores; both broadcast to (..., T, S).  A row that is masked completely gives
/// zeros.  A weight of 0 times NaN or infinity is NaN, as in a matrix product; keys that is_causal
/// and first_key hide from every query count as absent.  Vaswani et al., 2017.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Mask& mask, const AttentionOptions& options);
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& mask, const AttentionOptions& options);
/// (A template, so that {.is_causal = true} alone converts to options and not to a mask.)
template <class M>
concept AttentionMask = std::is_same_v<M, Mask> || std::is_same_v<M, Tensor>;
template <AttentionMask M>
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const M& mask) {
  return scaled_dot_product_attention(q, k, v, mask, AttentionOptions{});
}
/// Causal self-attention of n_head heads on packed projections: qkv (B, T, 3C) -> (B, T, C), where
/// C = H * D and each of q, k, v holds its heads in adjacent columns.  Equals splitting into (B, H,
/// T, D), scaled_dot_product_attention with is_causal, and merging the heads, without copies.
/// first_key as in AttentionOptions, for scores (B, H, T, T).
Tensor causal_self_attention(const Tensor& qkv, Dim n_head, double dropout_p = 0,
                             const std::optional<Indices>& first_key = {});

}  // namespace xgrad
