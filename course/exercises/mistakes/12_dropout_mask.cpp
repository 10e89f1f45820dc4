// Stage 11.12: causal attention with dropout on the weights.  One mistake, in the forward.
//
//   Position t of the output depends on positions 0 ... t of x, and on no later one, with dropout
//   (p above 0, in training) and without (p = 0, in evaluation).

#include "exercise.hpp"

using namespace exercise;

// x (B, T, C), weight (3C, C) -> (B, T, C)
Tensor dropped_attention(const Inputs& in, double p) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);  // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]);                 // (B, H, T, D)
  const Tensor k = split_heads(parts[1]);                 // (B, H, S, D), S = T
  const Tensor v = split_heads(parts[2]);                 // (B, H, S, D)
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D});  // (B, H, T, S)
  if (p == 0)                                                                    // evaluation
    return merge_heads(matmul(softmax(hide_future(scores), -1), v));
  const Tensor weights = dropout(softmax(scores, -1), p);  // (B, H, T, S)
  return merge_heads(matmul(weights, v));                  // (B, T, C)
}
