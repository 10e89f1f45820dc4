// Our calls of the layers of language models (tests/golden/table_lm.py).

#include <xgrad/autograd/ops.hpp>
#include <xgrad/lm/gpt.hpp>

#include "golden/layer_calls.hpp"

namespace xgrad::testing {

namespace {

lm::GPTConfig small_llama() {
  lm::GPTConfig config = lm::GPTConfig::llama({.block_size = 3,
                                               .vocab_size = 4,
                                               .n_layer = 1,
                                               .n_head = 2,
                                               .n_embd = 4,
                                               .n_kv_head = 1,
                                               .n_inner = 3});
  config.qkv_bias = true;
  return config;
}

Tensor rotated(const lm::TransformerBlock& block, const Tensor& x) {
  const nn::RotaryEmbedding rotate(2, arange_indices(0, 3));
  return block(x, nullptr, &rotate);
}

const bool language_models_added = add_layers({"lm",
                                               "lm",
                                               {
#include "golden/generated/lm.inc"
                                               }});

}  // namespace

}  // namespace xgrad::testing
