// Stage 11.4: the causal mask with a backward of its own.  One mistake.
//
//   y_ts = -inf where key s is later than query t, else x_ts.

#include "exercise.hpp"

using namespace exercise;

// (..., T, S) -> (..., T, S)
Tensor my_mask(const Tensor& x) {
  const Mask hidden = nn::future(x.size(-2), x.size(-1));  // (T, S)
  const auto forward = [hidden](std::span<const Tensor> in) {
    return masked_fill(in[0], hidden, -INFINITY);
  };
  const auto backward = [hidden](Context& ctx) {
    ctx.add(0, ctx.gradient());  // (..., T, S)
  };
  return record("my_mask", {x}, forward, backward);
}

// x (B, T, C), weight (3C, C), bias (C,) -> (B, T, C)
Tensor attention(const Inputs& in) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);  // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]);                 // (B, H, T, D)
  const Tensor k = split_heads(parts[1]);                 // (B, H, S, D), S = T
  const Tensor v = split_heads(parts[2]);                 // (B, H, S, D)
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D});  // (B, H, T, S)
  const Tensor weights = softmax(my_mask(scores), -1);                           // (B, H, T, S)
  return merge_heads(matmul(weights, v)) + in[2];                                // (B, T, C)
}
