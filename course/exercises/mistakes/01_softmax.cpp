// Stage 11.1: softmax with a backward of its own.  One mistake.
//
//   y_i = exp(x_i) / Σ_j exp(x_j) along the last dimension; every y_i depends on every x_j.

#include "exercise.hpp"

using namespace exercise;

// (..., n) -> (..., n)
Tensor my_softmax(const Tensor& x) {
  const auto forward = [](std::span<const Tensor> in) { return softmax(in[0], -1); };
  const auto backward = [](Context& ctx) {
    const Tensor g = ctx.gradient(), y = ctx.output();  // (..., n), (..., n)
    ctx.add(0, y * g);                                   // (..., n)
  };
  return record("my_softmax", {x}, forward, backward, {.saves_output = true});
}

// x (B, T, C), weight (3C, C), bias (C,) -> (B, T, C)
Tensor attention(const Inputs& in) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);  // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]);                 // (B, H, T, D)
  const Tensor k = split_heads(parts[1]);                 // (B, H, S, D), S = T
  const Tensor v = split_heads(parts[2]);                 // (B, H, S, D)
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D});  // (B, H, T, S)
  const Tensor weights = my_softmax(hide_future(scores));                        // (B, H, T, S)
  return merge_heads(matmul(weights, v)) + in[2];                                // (B, T, C)
}
