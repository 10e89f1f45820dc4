// Sizes as users get and pass them.

#include <functional>
#include <iterator>
#include <xgrad/xgrad.hpp>

#include "helpers/catch.hpp"

using namespace xgrad;

// Several of these in one `auto` do not compile if their types differ.
TEST_CASE("all sizes that users get and set are of one signed type", "[nn]") {
  const Tensor x = zeros({2, 3});
  const nn::GPTConfig c;
  const text::Characters letters = text::Characters::of(U"ab");
  nn::MultiHeadAttention heads(x.size(0), 1);
  const auto a = x.size(0), b = x.dim(), d = x.numel(), e = x.shape()[1], f = c.n_embd / c.n_head,
             g = c.kv_heads(), h = c.head_width(), i = c.inner_width(), j = heads.num_heads,
             k = nn::num_parameters(heads), l = nn::RecurrentOptions().num_layers,
             m = nn::GroupNorm(1, 2).num_groups, n = nn::BatchNorm1d(2).num_features,
             o = nn::KeyValueCache(3).capacity(), p = nn::LoraOptions().rank, q = letters.size(),
             r = nn::SelfAttentionOptions{.d_k = x.size(1)}.d_k.value_or(a),
             s = nn::GenerateOptions{.top_k = a}.top_k.value_or(a),
             t = AttentionOptions().causal_offset;
  CHECK(b * (a - e) - d + f - g + h + i + j + k + l + m + n + o + p + q + r + s + t > 0);
  CHECK(nn::GPT({.block_size = a, .vocab_size = q, .n_layer = 1, .n_head = 1, .n_embd = a})
            .h.size() == 1);
  CHECK(nn::Linear(a, 2 * a - 1)(zeros({1, a})).shape() == Shape{1, 3});
  const std::function<void()> refused[] = {[] { nn::Linear(-1, 2); },
                                           [] { nn::Embedding(2, -1); },
                                           [] { nn::PReLU(-1); },
                                           [] { nn::BatchNorm1d(-1); },
                                           [] { nn::SelfAttention(-1); },
                                           [] { nn::LSTM(1, -1); },
                                           [] { nn::GroupNorm(-1, 2); },
                                           [] { nn::MultiHeadAttention(2, -1); },
                                           [] { nn::GPT({.n_layer = -1}); },
                                           [] { nn::RotaryEmbedding(-2, {0}); },
                                           [] { nn::future(-1, 1); },
                                           [] { nn::sliding_window(1, 1, -1); },
                                           [] { nn::alibi_bias(-1, 1, 1); },
                                           [&] { nn::next_token_probabilities(x, {.top_k = -1}); },
                                           [&] { topk(x, -1); },
                                           [&] { x.split(-1); },
                                           [&] {
                                             x.split({-1, 3});
                                           },
                                           [&] { x.chunk(-1); },
                                           [&] { multinomial(x + 1, -1); },
                                           [] {
                                             causal_self_attention(zeros({1, 1, 3}), -1);
                                           },
                                           [] { linspace(0, 1, -1); },
                                           [] { eye(-1); },
                                           [] { randperm(-1); }};
  for (std::size_t call = 0; call < std::size(refused); ++call) {
    INFO("call " << call);
    CHECK_THROWS_AS(refused[call](), Error);
  }
}
