#pragma once
// Decoders of the GPT-2, Llama and Qwen families, and their parts.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "../autograd/tensor.hpp"
#include "../nn/attention.hpp"
#include "../nn/layers.hpp"
#include "../nn/module.hpp"

namespace xgrad::lm {

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
  std::optional<nn::RotaryOptions> rotary = {};  ///< none: positions are learned
  Size sliding_window = 0;  ///< a position sees itself and the window - 1 before it; 0: all
  NormKind norm = NormKind::layer;
  double norm_eps = 1e-5;
  bool qk_norm = false;  ///< RMSNorm of each head's queries and keys, before rotation: Qwen3
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
  /// These sizes as Llama: rotary positions, RMSNorm, SwiGLU, no biases, an untied lm_head.
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
/// n_embd (without head_dim), n_kv_head does not divide n_head, norm_eps is not positive,
/// sliding_window is negative, or a rotated head has an odd width; others as of RotaryEmbedding.
const GPTConfig& checked(const GPTConfig& config, const char* caller = "GPT");

// The pre-norm transformer block of GPT-2 and Llama, with nanoGPT's names and order of draws.

/// Causal self-attention: x (B, T, C) -> (B, T, C), with H heads of queries and G of keys and
/// values, D channels each.  With a cache, the positions of x follow the cached ones; errors as of
/// KeyValueCache::append(), and ValueError if dropout is on.  If `rotate` is given, it rotates
/// queries and keys by x's own positions.  first_key is that of AttentionOptions, for scores (B, H,
/// T, S).
struct CausalSelfAttention {
  nn::Linear c_attn;                          ///< C -> (H + 2G) D: queries, keys, values
  nn::Linear c_proj;                          ///< HD -> C
  std::optional<nn::RMSNorm> q_norm, k_norm;  ///< over the D channels of a head, if qk_norm
  Size n_head, n_kv_head;
  double dropout;  ///< of the attention weights and of the result
  bool training = true;

  /// ValueError as of checked().
  explicit CausalSelfAttention(const GPTConfig& c);
  CausalSelfAttention(Dim width, Dim heads, double p = 0, bool bias = true);
  Tensor operator()(const Tensor& x, nn::KeyValueCache* cache = nullptr,
                    const nn::RotaryEmbedding* rotate = nullptr,
                    const std::optional<Indices>& first_key = {}) const;
  static void visit(auto& self, auto&& v) {
    v("c_attn", self.c_attn);
    v("c_proj", self.c_proj);
    v("q_norm", self.q_norm);
    v("k_norm", self.k_norm);
    v("training", self.training);
  }

 private:
  Tensor grouped(const Tensor& qkv, double p, nn::KeyValueCache* cache,
                 const nn::RotaryEmbedding* rotate, const std::optional<Indices>& first_key) const;
};

/// c_proj(gelu(c_fc(x))) or, for SwiGLU, c_proj(silu(c_gate(x)) * c_fc(x)); then dropout.
struct MLP {
  nn::Linear c_fc;
  std::optional<nn::Linear> c_gate;  ///< of SwiGLU
  nn::Linear c_proj;
  double dropout;
  Activation activation;
  bool training = true;

  explicit MLP(const GPTConfig& c);
  MLP(Dim width, double p = 0, bool bias = true);
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

/// y = x + attn(ln_1(x)); y + mlp(ln_2(y)).  Cache, rotation and first keys are passed to attn.
struct TransformerBlock {
  Norm ln_1;
  CausalSelfAttention attn;
  Norm ln_2;
  MLP mlp;

  explicit TransformerBlock(const GPTConfig& c);
  TransformerBlock(Dim width, Dim heads, double dropout = 0, bool bias = true);
  Tensor operator()(const Tensor& x, nn::KeyValueCache* cache = nullptr,
                    const nn::RotaryEmbedding* rotate = nullptr,
                    const std::optional<Indices>& first_key = {}) const;
  static void visit(auto& self, auto&& v) {
    v("ln_1", self.ln_1);
    v("attn", self.attn);
    v("ln_2", self.ln_2);
    v("mlp", self.mlp);
  }
};

// The distribution from which the next token of a text is drawn.

/// Changes the logits of each sequence's next token, (B, V) in float32; `tokens` (B, T) are all
/// before it.  Minus infinity excludes a token.
using LogitsProcessor = std::function<Tensor(const Indices& tokens, const Tensor& logits)>;

/// Divides the logit of each token that has occurred by `penalty`, or multiplies it if it is
/// negative (Keskar et al., 2019).  ValueError unless the penalty is positive and finite.
LogitsProcessor repetition_penalty(double penalty);
/// Excludes each token that would end a sequence of n tokens that has occurred (Paulus et al.,
/// 2017).  ValueError if n is not positive.
LogitsProcessor no_repeat_ngram(Dim n);

struct GenerateOptions {
  double temperature = 1;  ///< logits are divided by it; 0: the likeliest, no draw
  OptionalDim top_k = {};  ///< draws among the k likeliest only
  double top_p = 1;        ///< draws among the likeliest that together have this probability
  double min_p = 0;        ///< draws among those with this share of the highest probability
  /// The ids that end a sequence (transformers' name).  An ended sequence is filled with the first
  /// of these ids, or 0 without any; generation stops when all have ended.
  std::vector<std::int64_t> eos_token_id = {};
  /// The number of positions on the left of each sequence that are padding, which makes prompts of
  /// different lengths one batch: no position sees them, nor counts from them.  Empty: none.
  std::vector<Size> left_padding = {};
  /// Called before each draw, and before the steps of next_token_probabilities(): for all sequences
  /// at once or, with left_padding and after one has ended, one by one, without padding and without
  /// ended sequences.
  LogitsProcessor logits_processor = {};
  /// Called after each step with the new token of each sequence.
  std::function<void(std::span<const std::int64_t>)> on_token = {};
  /// Called after that with the number of each sequence that has not ended; true ends it.
  std::function<bool(std::size_t)> sequence_ends = {};
  /// Called after that; true stops generation.
  std::function<bool()> stop = {};
};

/// The probabilities from which `generate` draws: logits (..., V) -> (..., V) in float32, without a
/// graph.  In HuggingFace's order, each step on the result of the one before:
///
///   1. temperature T:  p = softmax(logits / T); as T goes to 0, all of it on the likeliest
///   2. top_k:  keeps the k largest, and those equal to the last of them (Fan et al., 2018)
///   3. top_p:  keeps the fewest of the largest whose sum is top_p or more; among equals the lower
///      ids (Holtzman et al., 2020)
///   4. min_p:  keeps those with `p >= min_p * max p` (Nguyen et al., 2024)
///
/// after each of which p is divided by its sum.  (llama.cpp's usual order has temperature last.)
/// ValueError unless T is 0 or above and finite, top_k 1 or above, top_p above 0 and at most 1,
/// min_p from 0 to 1, and all logits finite but for minus infinity, which excludes tokens, not all
/// (float64 logits beyond float32 are shifted by the largest first); ShapeError without a
/// dimension, or if V is 0.
Tensor next_token_probabilities(const Tensor& logits, const GenerateOptions& options = {});

/// The errors of next_token_probabilities() that depend on the options alone.
void check_sampling(const GenerateOptions& options);

/// A decoder of the GPT-2 or Llama family: wte, wpe if positions are learned, dropout, n_layer
/// blocks, ln_f, and lm_head, which shares wte's weight if they are tied.  As GPT-2 it has
/// nanoGPT's names, order of draws and arithmetic: one seed gives the same weights and the same
/// losses.
struct GPT {
  GPTConfig config;
  nn::Embedding wte;
  std::optional<nn::Embedding> wpe;  ///< of learned positions
  nn::Dropout drop;
  std::vector<TransformerBlock> h;
  Norm ln_f;
  nn::Linear lm_head;

  /// Draws all weights from default_generator(): first each layer's own, then all again from N(0,
  /// 0.02), and the residual projections c_proj a third time from N(0, 0.02 / sqrt(2 n_layer)).
  /// ValueError as of checked().
  explicit GPT(const GPTConfig& c);

  /// Logits for the token after each position: idx (B, T) -> (B, T, V).  ShapeError if T is 0 or
  /// above block_size.  With caches, one for each block of h, idx are the tokens after the cached
  /// ones, which count towards block_size; all caches are appended to or none is.  ValueError
  /// unless there are as many caches as blocks, all of one length; others as of
  /// CausalSelfAttention.
  ///
  /// `first` separates documents in one sequence (document_starts()) and hides padding on the
  /// left: each position sees that position and later ones, and is counted from there, as in
  /// transformers' packed batches.  It broadcasts to (B, T), and counts the cached positions;
  /// ValueError unless it is from 0 to the position itself.
  Tensor operator()(const Indices& idx, std::span<nn::KeyValueCache> caches = {},
                    const std::optional<Indices>& first = {}) const;
  /// Logits for the token after the last position: idx (B, T) -> (B, V).
  Tensor last_logits(const Indices& idx, std::span<nn::KeyValueCache> caches = {},
                     const std::optional<Indices>& first = {}) const;
  /// The mean of -log p(target): idx and targets (B, T) -> ().  Targets of -100 are ignored.
  Tensor loss(const Indices& idx, const Indices& targets,
              const std::optional<Indices>& first = {}) const;

  /// Appends max_new_tokens to each sequence, or fewer if `options` end it earlier: idx (B, T) ->
  /// (B, T + max_new_tokens), drawn with next_token_probabilities(logits, options).  The model sees
  /// the last block_size tokens.  While these are all tokens, each new one costs one position
  /// (KeyValueCache); later it costs the whole window, because every token's position changes.
  /// Dropout is off, whatever the training flag says, and all draws come from `generator`, so
  /// sampling does not change a training run.  With one generator for each sequence, from which an
  /// ended one draws no more, a sequence of a batch is the same as alone.
  Indices generate(const Indices& idx, Dim max_new_tokens, Generator& generator,
                   const GenerateOptions& options = {}) const;
  Indices generate(const Indices& idx, Dim max_new_tokens, std::span<Generator> generators,
                   const GenerateOptions& options = {}) const;

  static void visit(auto& self, auto&& v) {
    v("transformer.wte", self.wte);
    v("transformer.wpe", self.wpe);
    v("transformer.drop", self.drop);
    v("transformer.h", self.h);
    v("transformer.ln_f", self.ln_f);
    v("lm_head", self.lm_head);
    if (self.config.tied)
      v("lm_head.weight", nn::tied_to("transformer.wte.weight"));
  }

 private:
  Tensor run(const Indices& idx, std::span<nn::KeyValueCache> caches,
             const std::optional<Indices>& first, bool last, const Indices* targets) const;
};

/// nn::merge_lora() of a model whose tied head may have adapters (load_adapters()): the head is
/// untied first, so the embedding stays as it is.
void merge_lora(GPT& model);

}  // namespace xgrad::lm

extern template void xgrad::nn::detail::Collector::layer(const std::string&,
                                                         xgrad::lm::TransformerBlock&);
extern template void xgrad::nn::detail::Collector::layer(const std::string&, xgrad::lm::GPT&);
