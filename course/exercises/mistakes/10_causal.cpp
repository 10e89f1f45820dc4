// Stage 11.10: causal attention of ready-made ops.  One mistake, in the forward.
//
//   Position t of the output depends on positions 0 ... t of x, and on no later one.

#include "exercise.hpp"

using namespace exercise;

// x (B, T, C), weight (3C, C) -> (B, T, C)
Tensor attention(const Inputs& in) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);  // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]);                 // (B, H, T, D)
  const Tensor k = split_heads(parts[1]);                 // (B, H, S, D), S = T
  const Tensor v = split_heads(parts[2]);                 // (B, H, S, D)
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D});  // (B, H, T, S)
  const Mask hidden = tril(ones({T, T}), 1) == 0;                                // (T, S)
  const Tensor weights = softmax(masked_fill(scores, hidden, -INFINITY), -1);    // (B, H, T, S)
  return merge_heads(matmul(weights, v));                                        // (B, T, C)
}
