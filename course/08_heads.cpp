// Stage 8: many heads.

#include <fmt/format.h>

#include <xgrad/xgrad.hpp>

using namespace xgrad;

namespace {

constexpr std::size_t B = 1, T = 2, H = 2, D = 3, C = H * D;

// (B, T, C) -> (B, H, T, D)
Tensor split_heads(const Tensor& x) { return permute(reshape(x, {B, T, H, D}), {0, 2, 1, 3}); }
// (B, H, T, D) -> (B, T, C)
Tensor merge_heads(const Tensor& x) { return reshape(permute(x, {0, 2, 1, 3}), {B, T, C}); }

// qkv (B, T, 3C): queries, keys and values side by side
Tensor multi_head(const Tensor& qkv) {
  const auto [q, k, v] = chunk<3>(qkv, -1);
  return merge_heads(scaled_dot_product_attention(split_heads(q), split_heads(k), split_heads(v),
                                                  {.is_causal = true}));
}

}  // namespace

int main() {
  // Two positions of six channels; the numbers say where each came from: 10 t + channel.
  const Tensor x = tensor({{{0, 1, 2, 3, 4, 5}, {10, 11, 12, 13, 14, 15}}});
  const Tensor heads = split_heads(x);
  fmt::print("head 0:\n{}\nhead 1:\n{}\n\n", heads[0][0], heads[0][1]);

  // A reshape alone has the right shape, and mixes positions with heads.
  const Tensor mixed = reshape(x, {B, H, T, D});
  fmt::print("\"head 0\":\n{}\n\n", mixed[0][0]);

  fmt::print("split and merged again: {}\n", allclose(merge_heads(heads), x));
  manual_seed(1337);
  const Tensor qkv = randn({B, T, 3 * C});
  fmt::print("as the library's: {}\n",
             allclose(multi_head(qkv), causal_self_attention(qkv, H), 1e-4, 1e-6));
}
