#include "autograd/check/attention_variants.hpp"

#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/attention.hpp>

using namespace xgrad;

Tensor attention(const Tensor& x, const Weights& w, const Variant& v) {
  const Scope scope("attn");
  const std::size_t B = x.size(0), T = x.size(1);
  const auto parts = chunk(linear(x, w.qkv), 3, -1);
  const auto heads = [&](const Tensor& a) {
    return v.heads_not_transposed ? reshape(a, {B, 2, T, 4})
                                  : permute(reshape(a, {B, T, 2, 4}), {0, 2, 1, 3});
  };
  Tensor q = heads(parts[0]);
  const Tensor k = heads(parts[1]), value = heads(parts[2]);
  if (v.scales_q)
    q = q * v.scale;
  Tensor scores = v.scores_transposed ? transpose(matmul(k, transpose(q, -2, -1)), -2, -1)
                                      : matmul(q, transpose(k, -2, -1));
  if (!v.no_scale && !v.scales_q)
    scores = scores * v.scale;
  Mask hidden = nn::future(T, T);
  if (v.mask_leaks)
    hidden = hidden & tril(hidden | ~hidden, 1);  // only the next position of the future
  if (v.mask_off_by_one)
    hidden = hidden & ~tril(hidden | ~hidden, 1);  // not the next position
  if (!v.mask_after && !v.no_mask)
    scores = masked_fill(scores, hidden, -inf);
  Tensor weights = softmax(scores, v.softmax_dim);
  if (v.mask_after)
    weights = masked_fill(weights, hidden, 0);
  const Tensor y = matmul(weights, value);  // (B, H, T, D)
  Tensor merged;
  if (v.heads_reversed)
    merged = cat({select(y, 1, 1), select(y, 1, 0)}, -1);
  else
    merged = reshape(v.heads_not_merged ? y : permute(y, {0, 2, 1, 3}), {B, T, std::size_t{8}});
  return linear(merged, v.wrong_weight ? w.out * 2.0 : w.out);
}
