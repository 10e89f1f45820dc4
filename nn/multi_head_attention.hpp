#pragma once

#include <cstddef>
#include <optional>
#include <variant>
#include <xgrad/nn/key_value_cache.hpp>
#include <xgrad/nn/linear.hpp>
#include <xgrad/nn/self_attention.hpp>

namespace xgrad::nn {

struct MultiHeadAttentionOptions {
  double dropout = 0;  ///< on the attention weights, in training
  bool bias = true;    ///< of the input and output projections
  /// Heads of keys and values, each for as many neighbouring heads of queries; as many as these
  /// unless given.  Not in PyTorch.  Ainslie et al., 2023.
  std::optional<Size> num_kv_heads = {};
};

/// Attention of several heads, with the parameters, names and draws of torch.nn.MultiheadAttention.
/// Batches come first, as with its batch_first=True, which is not its default.
struct MultiHeadAttention {
  /// (3C, C): the projections of query, key and value, one on the other.  Those of key and value
  /// are C * num_kv_heads / num_heads wide.
  Tensor in_proj_weight;
  Tensor in_proj_bias;  ///< (3C,), zeros, or undefined
  Linear out_proj;      ///< (C, C); its bias starts as zeros
  Size num_heads, num_kv_heads;
  double dropout;
  bool training = true;

  /// Draws out_proj as Linear does, then in_proj_weight by xavier_uniform_.  ValueError unless
  /// num_heads divides embed_dim and num_kv_heads num_heads.
  MultiHeadAttention(Size embed_dim, Size heads, const MultiHeadAttentionOptions& options = {});

  /// A mask of pairs of positions is (T, S) or (B * H, T, S).
  struct Call {
    /// A Mask is true where attention is FORBIDDEN, as in PyTorch's layer and unlike
    /// scaled_dot_product_attention's; a Tensor is added to the scores.
    std::variant<std::monostate, Mask, Tensor> attn_mask = {};
    std::optional<Mask> key_padding_mask = {};  ///< (B, S), true where a key is padding
    bool is_causal = false;  ///< forbids keys after the query, besides what the masks forbid
    bool need_weights = true;
    bool average_attn_weights = true;  ///< over the heads
    /// The positions are those after what it holds.  ValueError unless query, key and value are one
    /// Tensor, with is_causal, without masks, weights and dropout; others as of its append().
    KeyValueCache* cache = nullptr;
  };
  /// query (B, T, C), key and value (B, S, C) -> output (B, T, C) and, if need_weights, weights
  /// (B, T, S), or (B, H, T, S) without averaging; all without B for a single sequence.  A query to
  /// which all keys are forbidden gets weights of zero, where PyTorch gives NaN.  Without
  /// need_weights the fused op is used, which is faster.
  Attended operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                      const Call& call) const;
  Attended operator()(const Tensor& query, const Tensor& key, const Tensor& value) const {
    return (*this)(query, key, value, Call{});
  }

  static void visit(auto& self, auto&& v) {
    v("in_proj_weight", self.in_proj_weight);
    v("in_proj_bias", self.in_proj_bias);
    v("out_proj", self.out_proj);
    v("training", self.training);
  }
};

}  // namespace xgrad::nn
