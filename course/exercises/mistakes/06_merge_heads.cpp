// Stage 11.6: the heads are merged by an op with a backward of its own.  One mistake.
//
//   y_b,t,hD+d = x_bhtd: the heads side by side.

#include "exercise.hpp"

using namespace exercise;

// (B, H, T, D) -> (B, T, C)
Tensor my_merge_heads(const Tensor& x) {
  const auto forward = [](std::span<const Tensor> in) {
    return reshape(permute(in[0], {0, 2, 1, 3}), {B, T, C});
  };
  const auto backward = [](Context& ctx) {
    const Tensor g = ctx.gradient();       // (B, T, C)
    ctx.add(0, reshape(g, {B, H, T, D}));  // (B, H, T, D)
  };
  return record("my_merge_heads", {x}, forward, backward);
}

// x (B, T, C), weight (3C, C), bias (C,) -> (B, T, C)
Tensor attention(const Inputs& in) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);  // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]);                 // (B, H, T, D)
  const Tensor k = split_heads(parts[1]);                 // (B, H, S, D), S = T
  const Tensor v = split_heads(parts[2]);                 // (B, H, S, D)
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D});  // (B, H, T, S)
  const Tensor weights = softmax(hide_future(scores), -1);                       // (B, H, T, S)
  return my_merge_heads(matmul(weights, v)) + in[2];                             // (B, T, C)
}
