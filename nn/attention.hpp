#pragma once
// Attention: masks, rotary positions, a cache of keys and values, layers of one head and of
// several.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>
#include "../autograd/tensor.hpp"
#include "layers.hpp"

namespace xgrad::nn {

/// (T, S), true at [t][s] where s > t: the keys that a causal query must not see.
Mask future(Dim queries, Dim keys);

// Query t is at position t + offset: S - T if the queries are at the last of the keys' positions;
// it may be negative.

/// (T, S), true where the key is at the query's position or one of the window - 1 before it: a
/// causal mask for scaled_dot_product_attention.  Jiang et al., 2023.  ValueError unless window is
/// positive and |offset| below 2^60.
Mask sliding_window(Dim queries, Dim keys, Dim window, Dim offset = 0);
/// (H, T, S), -slope_h * |position of the query - position of the key|: an additive mask.  Slopes
/// are 2^(-8 h / H) for h = 1 ... H if H is a power of two; else those of the next smaller power n,
/// then every other of 2n.  Not causal; masked_fill(bias, future(T, S), -INFINITY) is.  Press et
/// al., 2022.
Tensor alibi_bias(Dim heads, Dim queries, Dim keys, Dim offset = 0, DType dtype = DType::float32);

/// The pairs of channels that are rotated together.
enum class RotaryPairs {
  half,        ///< i and i + D / 2, as Llama's rotate_half and GPT-NeoX
  interleaved  ///< 2i and 2i + 1, as the paper and GPT-J
};
struct RotaryOptions {
  double theta = 10000;
  RotaryPairs pairs = RotaryPairs::half;
  /// A divisor of all frequencies, for texts longer than those of the training ("linear").
  double factor = 1;
  /// As Llama 3: if n is not 0, a pair that turns more than high_freq_factor times in n positions
  /// keeps its frequency, one that turns fewer than low_freq_factor times has it divided, and in
  /// between the divisor is interpolated.
  Size original_max_position_embeddings = 0;
  double low_freq_factor = 1, high_freq_factor = 4;
  /// The share of each head's channels, the first ones, that are rotated; the others stay as they
  /// are (GPT-NeoX, Phi, GLM).
  double partial_rotary_factor = 1;
};

/// Rotates queries and keys by their positions p, so that their products depend on distances: pair
/// i of D / 2, (a, b), becomes (a cos - b sin, b cos + a sin) of p theta^(-2i / D).  Angles are
/// float64 for any x.  Su et al., 2021.  Make it once for a pass and use it in every layer:
///
///   const nn::RotaryEmbedding rotate(D, arange_indices(0, T));
///   y = scaled_dot_product_attention(rotate(q), rotate(k), v, {.is_causal = true});
class RotaryEmbedding {
 public:
  /// For heads of D channels, at positions (T,), or any shape that broadcasts to x's shape without
  /// D: (B, 1, T) if positions differ within the batch.  ValueError unless the number of rotated
  /// channels is even, theta and factor are positive and low_freq_factor is below high_freq_factor.
  RotaryEmbedding(Dim head_dim, const Indices& positions, const RotaryOptions& options = {});
  /// The channels of a head that it rotates.  Errors as above.
  static Size rotated_channels(Dim head_dim, const RotaryOptions& options);
  /// With given cosines and sines (..., T, R / 2), to which gradients flow, for the first R
  /// channels of heads of any D >= R: angles of another rule, or learned ones.  ShapeError unless
  /// they have one shape.
  RotaryEmbedding(const Tensor& cos, const Tensor& sin, RotaryPairs pairs = RotaryPairs::half);
  Tensor operator()(const Tensor& x) const;  ///< (..., T, D) -> (..., T, D)

 private:
  RotaryPairs pairs_;
  Size head_dim_ = -1;  // -1: any that is large enough
  Tensor cos_, sin_;    // (..., T, R / 2)
};

// Cached keys and values of earlier positions, with which the next token of a text costs one
// position and not all of them.
//
//   std::vector<nn::KeyValueCache> caches(model.h.size(), nn::KeyValueCache(capacity));
//   const NoGrad no_grad;
//   model.last_logits(prompt, caches);  // the prompt in one pass
//   model.last_logits(token, caches);   // then each token alone
//
// In your own attention, with q (B, H, T, D) for the last T positions:
//
//   const auto [keys, values, offset] = cache.append(k, v);
//   y = scaled_dot_product_attention(q, keys, values, {.is_causal = true, .causal_offset =
//   offset});

/// The keys and values of one attention layer.  A copy shares their memory until either appends: so
/// one prompt can be continued in several ways.
class KeyValueCache {
 public:
  /// An empty cache with room for `capacity` positions.
  explicit KeyValueCache(Dim capacity) : capacity_(capacity) {}

  Size capacity() const { return capacity_; }
  Size length() const { return length_; }  ///< the number of cached positions

  struct Held {
    Tensor keys, values;  ///< (..., capacity, D) and (..., capacity, Dv), zeros after the last
    Size offset;          ///< the number of positions before: the first new one
  };
  /// Appends the keys k (..., T, D) and values v (..., T, Dv) of the next T positions, and returns
  /// all that are cached.  Copies only k and v, unless the last call's result still exists.
  /// ShapeError unless k and v fit each other and the cache, DTypeError for another dtype,
  /// ValueError beyond the capacity, GraphError if a gradient may be needed: use NoGrad.
  Held append(const Tensor& k, const Tensor& v);

  /// Drops all but the first `length` positions.  An empty cache accepts any shape and dtype again.
  /// ValueError if it has fewer.
  void truncate(Dim length);

 private:
  Size capacity_, length_ = 0;
  Size written_ = 0;                            // positions from here on are zeros
  std::shared_ptr<const Value> keys_, values_;  // null if the cache is empty
};

/// xgrad::causal_self_attention of positions that follow those in the cache, to which it appends
/// theirs: qkv (B, T, 3C) -> (B, T, C).  Errors as of append().
Tensor causal_self_attention(const Tensor& qkv, Dim n_head, KeyValueCache& cache);

/// Returns f().  If it throws, restores the caches.
template <class F>
Tensor all_or_nothing(std::span<KeyValueCache> caches, const F& f) {
  std::vector<Size> held;
  for (const KeyValueCache& cache : caches)
    held.push_back(cache.length());
  try {
    return f();
  } catch (...) {
    for (std::size_t i = 0; i < caches.size(); ++i)
      caches[i].truncate(held[i]);
    throw;
  }
}

/// The result of an attention layer.
struct Attended {
  Tensor output;
  Tensor weights;  ///< each query's weights over the keys; undefined unless requested
};

struct SelfAttentionOptions {
  OptionalDim d_k = {};           ///< width of queries and keys; d_model by default
  OptionalDim d_v = {};           ///< width of values; d_model by default
  bool output_projection = true;  ///< without it, the output has width d_v
};

/// Self-attention of one head, written to be read next to the formula softmax(Q Kᵀ / sqrt(d_k)) V.
/// Vaswani et al., 2017.
struct SelfAttention {
  Linear W_q, W_k, W_v;       ///< without bias; drawn in this order
  std::optional<Linear> W_o;  ///< without bias
  double scale;               ///< 1 / sqrt(d_k)

  SelfAttention(Dim d_model, const SelfAttentionOptions& options = {});

  struct Call {
    std::optional<Mask> mask = {};  ///< true where attention is allowed; broadcasts to (B, T, T)
    bool is_causal = false;         ///< position t sees positions 0 ... t
  };
  /// x (B, T, C) or (T, C) -> output (B, T, C), weights (B, T, T).  A position that may attend to
  /// none gets weights of zero.
  Attended operator()(const Tensor& x, const Call& call) const;
  Attended operator()(const Tensor& x) const { return (*this)(x, Call{}); }

  static void visit(auto& self, auto&& v) {
    v("W_q", self.W_q);
    v("W_k", self.W_k);
    v("W_v", self.W_v);
    v("W_o", self.W_o);
  }
};

struct MultiHeadAttentionOptions {
  double dropout = 0;  ///< of the attention weights, in training
  bool bias = true;    ///< of the input and output projections
  /// Heads of keys and values, each for as many consecutive heads of queries; num_heads by default.
  /// Not in PyTorch.  Ainslie et al., 2023.
  OptionalDim num_kv_heads = {};
};

/// Attention of several heads, with the parameters, names and draws of torch.nn.MultiheadAttention.
/// The batch comes first, as with batch_first=True, which is not PyTorch's default.
struct MultiHeadAttention {
  /// (3C, C): the stacked projections of query, key and value.  For key and value they are C *
  /// num_kv_heads / num_heads wide.
  Tensor in_proj_weight;
  Tensor in_proj_bias;  ///< (3C,), zeros, or undefined
  Linear out_proj;      ///< (C, C); its bias starts as zeros
  Size num_heads, num_kv_heads;
  double dropout;
  bool training = true;

  /// Draws out_proj as Linear does, then in_proj_weight by xavier_uniform_.  ValueError unless
  /// num_heads divides embed_dim and num_kv_heads num_heads.
  MultiHeadAttention(Dim embed_dim, Dim heads, const MultiHeadAttentionOptions& options = {});

  /// attn_mask has the shape (T, S) or (B * H, T, S).
  struct Call {
    /// A Mask is true where attention is FORBIDDEN, as in PyTorch's layer and unlike
    /// scaled_dot_product_attention's; a Tensor is added to the scores.
    std::variant<std::monostate, Mask, Tensor> attn_mask = {};
    std::optional<Mask> key_padding_mask = {};  ///< (B, S), true where a key is padding
    bool is_causal = false;                     ///< forbids keys after the query as well
    bool need_weights = true;
    bool average_attn_weights = true;  ///< over the heads
    /// The positions follow the cached ones.  ValueError unless query, key and value are one
    /// Tensor, with is_causal, without masks, weights and dropout; others as of its append().
    KeyValueCache* cache = nullptr;
  };
  /// query (B, T, C), key and value (B, S, C) -> output (B, T, C) and, if need_weights, weights (B,
  /// T, S), or (B, H, T, S) without averaging; all without B for a single sequence.  A query for
  /// which all keys are forbidden gets weights of zero, where PyTorch gives NaN.  Without
  /// need_weights it uses the fused op, which is faster.
  Attended operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                      const Call& call) const;
  Attended operator()(const Tensor& query, const Tensor& key, const Tensor& value) const;

  static void visit(auto& self, auto&& v) {
    v("in_proj_weight", self.in_proj_weight);
    v("in_proj_bias", self.in_proj_bias);
    v("out_proj", self.out_proj);
    v("training", self.training);
  }
};

extern template void detail::Collector::layer(const std::string&, MultiHeadAttention&);

}  // namespace xgrad::nn
