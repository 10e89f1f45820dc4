// Stage 11.5: the bias with a backward of its own.  One mistake.
//
//   y_btc = x_btc + bias_c: one bias for all positions of all sequences.

#include "exercise.hpp"

using namespace exercise;

// x (B, T, C), bias (C,) -> (B, T, C)
Tensor my_bias(const Tensor& x, const Tensor& bias) {
  const auto forward = [](std::span<const Tensor> in) { return in[0] + in[1]; };
  const auto backward = [](Context& ctx) {
    ctx.add(0, ctx.gradient());                // (B, T, C)
    ctx.add(1, mean(ctx.gradient(), {0, 1}));  // (C,)
  };
  return record("my_bias", {x, bias}, forward, backward);
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
  return my_bias(merge_heads(matmul(weights, v)), in[2]);                        // (B, T, C)
}
