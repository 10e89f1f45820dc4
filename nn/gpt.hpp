#pragma once
// A decoder: GPT-2, Llama and their kin.  As GPT-2 it has the names, the order of draws and the
// arithmetic of nanoGPT: one seed gives the same weights, and the same losses.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>
#include <xgrad/nn/dropout.hpp>
#include <xgrad/nn/embedding.hpp>
#include <xgrad/nn/gpt_config.hpp>
#include <xgrad/nn/key_value_cache.hpp>
#include <xgrad/nn/linear.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/nn/sampling.hpp>
#include <xgrad/nn/transformer_block.hpp>

namespace xgrad {
class Generator;
}

namespace xgrad::nn {

/// wte, and wpe where positions are learned, dropout, n_layer blocks, ln_f, and lm_head, whose
/// weight is that of wte if they are tied.
struct GPT {
  GPTConfig config;
  Embedding wte;
  std::optional<Embedding> wpe;  ///< of learned positions
  Dropout drop;
  std::vector<TransformerBlock> h;
  Norm ln_f;
  Linear lm_head;

  /// Draws all weights from default_generator(): each layer's own first, then all again from
  /// N(0, 0.02), those of the residual projections c_proj a third time from
  /// N(0, 0.02 / sqrt(2 n_layer)).  ValueError as of checked().
  explicit GPT(const GPTConfig& c);

  /// Logits for the token after each position: idx (B, T) -> (B, T, V).  ShapeError if T is 0 or
  /// above block_size.  With caches, one for each block of h, idx are the tokens after those that
  /// they hold, of which block_size leaves room for so many fewer; all of them take theirs or none
  /// does.  ValueError unless they are as many as the blocks and hold equally many; others as of
  /// CausalSelfAttention.
  Tensor operator()(const Indices& idx, std::span<KeyValueCache> caches = {}) const;
  /// Logits for the token after the last position: idx (B, T) -> (B, V).
  Tensor last_logits(const Indices& idx, std::span<KeyValueCache> caches = {}) const;
  /// The mean of -log p(target): idx and targets (B, T) -> ().  A target of -100 does not count.
  Tensor loss(const Indices& idx, const Indices& targets) const;

  /// Appends max_new_tokens to each sequence, or fewer if `options` end it earlier: idx (B, T) ->
  /// (B, T + max_new_tokens), drawn with next_token_probabilities(logits, options).  The model
  /// sees the last block_size tokens; as long as that is all of them, each new one costs one
  /// position (KeyValueCache), from then on all of the window, for every token moves.  Dropout is
  /// off, whatever the training flag says, and all draws come from `generator`: a run that samples
  /// on the way trains as one that does not.
  Indices generate(const Indices& idx, Size max_new_tokens, Generator& generator,
                   const GenerateOptions& options = {}) const;

  static void visit(auto& self, auto&& v) {
    v("transformer.wte", self.wte);
    v("transformer.wpe", self.wpe);
    v("transformer.drop", self.drop);
    v("transformer.h", self.h);
    v("transformer.ln_f", self.ln_f);
    v("lm_head", self.lm_head);
    if (self.config.tied)
      v("lm_head.weight", tied_to("transformer.wte.weight"));
  }

 private:
  Tensor hidden(const Indices& idx, std::span<KeyValueCache> caches) const;
};

}  // namespace xgrad::nn
