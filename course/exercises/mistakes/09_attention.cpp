// Stage 11.9: an attention of ready-made ops.  One mistake, in the forward.
//
//   softmax(q kᵀ / √D, the future hidden) v + bias, with channel h D + d that of head h

#include "exercise.hpp"

using namespace exercise;

// x (B, T, C), weight (3C, C), bias (C,) -> (B, T, C)
Tensor attention(const Inputs& in) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);  // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]);                 // (B, H, T, D)
  const Tensor k = split_heads(parts[1]);                 // (B, H, S, D), S = T
  const Tensor v = split_heads(parts[2]);                 // (B, H, S, D)
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D});  // (B, H, T, S)
  const Tensor weights = softmax(hide_future(scores), -1);                       // (B, H, T, S)
  const Tensor y = matmul(weights, v);                                           // (B, H, T, D)
  const Tensor merged = reshape(permute(y, {0, 2, 3, 1}), {B, T, C});            // (B, T, C)
  return merged + in[2];                                                         // (B, T, C)
}
