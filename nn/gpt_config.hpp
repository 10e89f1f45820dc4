#pragma once
// What a decoder is made of: GPT-2 and its kin, Llama and its kin.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <xgrad/nn/rotary_embedding.hpp>

namespace xgrad::nn {

enum class NormKind : std::uint8_t { layer, rms };
enum class Activation : std::uint8_t {
  gelu,       ///< exact
  gelu_tanh,  ///< Gelu::tanh, as OpenAI's GPT-2
  swiglu      ///< silu(c_gate(x)) * c_fc(x)
};

/// Sizes and options of a GPT.  The defaults are nanoGPT's.
struct GPTConfig {
  Size block_size = 1024;  ///< longest sequence
  Size vocab_size = 50304;
  Size n_layer = 12;
  Size n_head = 12;
  Size n_embd = 768;
  double dropout = 0;
  bool bias = true;    ///< in the Linears of the blocks and in the LayerNorms
  Size n_kv_head = 0;  ///< heads of keys and values, each for several queries; 0: n_head
  Size head_dim = 0;   ///< 0: n_embd / n_head
  Size n_inner = 0;    ///< width of the feed-forward part; 0: 4 n_embd
  std::optional<RotaryOptions> rotary = {};  ///< none: positions are learned
  NormKind norm = NormKind::layer;
  double norm_eps = 1e-5;
  Activation activation = Activation::gelu;
  std::optional<bool> qkv_bias = {};   ///< of queries, keys and values; none: as `bias`
  std::optional<bool> proj_bias = {};  ///< of the attention's result; none: as `bias`
  std::optional<bool> mlp_bias = {};   ///< none: as `bias`
  bool tied = true;                    ///< lm_head has the weight of wte

  Size kv_heads() const { return n_kv_head > 0 ? n_kv_head : n_head; }
  Size head_width() const { return head_dim > 0 ? head_dim : n_embd / n_head; }
  Size inner_width() const { return n_inner > 0 ? n_inner : 4 * n_embd; }

  /// These sizes as OpenAI's GPT-2.  Radford et al., 2019.
  static constexpr GPTConfig gpt2(GPTConfig sizes) {
    sizes.activation = Activation::gelu_tanh;
    return sizes;
  }
  /// These sizes as Llama: rotary positions, RMSNorm, SwiGLU, no biases, a weight of lm_head's own.
  /// Touvron et al., 2023.
  static constexpr GPTConfig llama(GPTConfig sizes) {
    sizes.rotary.emplace();
    sizes.norm = NormKind::rms;
    sizes.activation = Activation::swiglu;
    sizes.bias = false;
    sizes.tied = false;
    return sizes;
  }
};

/// The configuration.  ValueError, beginning with `caller`, if a size is 0, n_head does not divide
/// n_embd (and no head_dim is given), n_kv_head does not divide n_head, norm_eps is not positive, a
/// head that rotates has an odd width, and as of RotaryEmbedding.
const GPTConfig& checked(const GPTConfig& config, const char* caller = "GPT");

}  // namespace xgrad::nn
