#pragma once
// The pre-norm transformer block of GPT-2 and Llama, with nanoGPT's names and order of draws.

#include <cstddef>
#include <optional>
#include <xgrad/nn/gpt_config.hpp>
#include <xgrad/nn/key_value_cache.hpp>
#include <xgrad/nn/linear.hpp>

namespace xgrad::nn {

/// Causal self-attention: x (B, T, C) -> (B, T, C), H heads of D channels, of which G have keys and
/// values.  With a cache, x are the positions that come after those that it holds; errors as of
/// KeyValueCache::append(), and ValueError if dropout is on.  Queries and keys are rotated by
/// `rotate`, if it is given: by x's own positions.
struct CausalSelfAttention {
  Linear c_attn;  ///< C -> (H + 2G) D: queries, keys, values
  Linear c_proj;  ///< HD -> C
  Size n_head, n_kv_head;
  double dropout;  ///< on the attention weights, and on the result
  bool training = true;

  /// ValueError as of checked().
  explicit CausalSelfAttention(const GPTConfig& c);
  CausalSelfAttention(Size width, Size heads, double p = 0, bool bias = true);
  Tensor operator()(const Tensor& x, KeyValueCache* cache = nullptr,
                    const RotaryEmbedding* rotate = nullptr) const;
  static void visit(auto& self, auto&& v) {
    v("c_attn", self.c_attn);
    v("c_proj", self.c_proj);
    v("training", self.training);
  }

 private:
  Tensor grouped(const Tensor& qkv, double p, KeyValueCache* cache,
                 const RotaryEmbedding* rotate) const;
};

/// c_proj(gelu(c_fc(x))) or, of SwiGLU, c_proj(silu(c_gate(x)) * c_fc(x)); then dropout.
struct MLP {
  Linear c_fc;
  std::optional<Linear> c_gate;  ///< of SwiGLU
  Linear c_proj;
  double dropout;
  Activation activation;
  bool training = true;

  explicit MLP(const GPTConfig& c);
  MLP(Size width, double p = 0, bool bias = true);
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("c_fc", self.c_fc);
    v("c_gate", self.c_gate);
    v("c_proj", self.c_proj);
    v("training", self.training);
  }
};

/// The LayerNorm or RMSNorm of a decoder, over the last dimension.
struct Norm {
  Tensor weight;  ///< (n_embd,), ones
  Tensor bias;    ///< (n_embd,), zeros, or undefined: an RMSNorm has none
  double eps;
  NormKind kind;

  explicit Norm(const GPTConfig& c);
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("weight", self.weight);
    v("bias", self.bias);
  }
};

/// x + attn(ln_1(x)), and of that x + mlp(ln_2(x)).  Cache and rotation are those of attn.
struct TransformerBlock {
  Norm ln_1;
  CausalSelfAttention attn;
  Norm ln_2;
  MLP mlp;

  explicit TransformerBlock(const GPTConfig& c);
  TransformerBlock(Size width, Size heads, double dropout = 0, bool bias = true);
  Tensor operator()(const Tensor& x, KeyValueCache* cache = nullptr,
                    const RotaryEmbedding* rotate = nullptr) const;
  static void visit(auto& self, auto&& v) {
    v("ln_1", self.ln_1);
    v("attn", self.attn);
    v("ln_2", self.ln_2);
    v("mlp", self.mlp);
  }
};

}  // namespace xgrad::nn
