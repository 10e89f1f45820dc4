#pragma once
// The pre-norm transformer block of GPT-2, with nanoGPT's names and order of draws.

#include <cstddef>
#include <xgrad/nn/key_value_cache.hpp>
#include <xgrad/nn/layer_norm.hpp>
#include <xgrad/nn/linear.hpp>

namespace xgrad::nn {

/// Causal self-attention: x (B, T, C) -> (B, T, C).  With a cache, x are the positions that come
/// after those that it holds; errors as of KeyValueCache::append(), and ValueError if dropout is
/// on.
struct CausalSelfAttention {
  Linear c_attn;  ///< C -> 3C: queries, keys, values
  Linear c_proj;  ///< C -> C
  std::size_t n_head;
  double dropout;  ///< on the attention weights, and on the result
  bool training = true;

  /// ValueError unless heads divides width.
  CausalSelfAttention(std::size_t width, std::size_t heads, double p = 0, bool bias = true);
  Tensor operator()(const Tensor& x, KeyValueCache* cache = nullptr) const;
  static void visit(auto& self, auto&& v) {
    v("c_attn", self.c_attn);
    v("c_proj", self.c_proj);
    v("training", self.training);
  }
};

/// c_proj(gelu(c_fc(x))), 4C wide inside, then dropout.
struct MLP {
  Linear c_fc, c_proj;
  double dropout;
  bool training = true;

  MLP(std::size_t width, double p = 0, bool bias = true);
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("c_fc", self.c_fc);
    v("c_proj", self.c_proj);
    v("training", self.training);
  }
};

/// x + attn(ln_1(x)), and of that x + mlp(ln_2(x)).  The cache is that of attn.
struct TransformerBlock {
  LayerNorm ln_1;
  CausalSelfAttention attn;
  LayerNorm ln_2;
  MLP mlp;

  TransformerBlock(std::size_t width, std::size_t heads, double dropout = 0, bool bias = true);
  Tensor operator()(const Tensor& x, KeyValueCache* cache = nullptr) const;
  static void visit(auto& self, auto&& v) {
    v("ln_1", self.ln_1);
    v("attn", self.attn);
    v("ln_2", self.ln_2);
    v("mlp", self.mlp);
  }
};

}  // namespace xgrad::nn
