// Stage 11.2: the scores with a backward of its own.  One mistake.
//
//   scores_ts = Σ_d q_td k_sd, the product of q with k transposed.

#include "exercise.hpp"

using namespace exercise;

// q (B, H, T, D), k (B, H, S, D) -> (B, H, T, S)
Tensor my_scores(const Tensor& q, const Tensor& k) {
  const auto forward = [](std::span<const Tensor> in) {
    return matmul(in[0], transpose(in[1], -2, -1));
  };
  const auto backward = [q = Saved(q), k = Saved(k)](Context& ctx) {
    const Tensor g = ctx.gradient();                       // (B, H, T, S)
    ctx.add(0, matmul(g, k.tensor()));                     // that of q, (B, H, T, D)
    ctx.add(1, matmul(transpose(q.tensor(), -2, -1), g));  // that of k, (B, H, S, D)
  };
  return record("my_scores", {q, k}, forward, backward);
}

// x (B, T, C), weight (3C, C), bias (C,) -> (B, T, C)
Tensor attention(const Inputs& in) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);         // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]);                        // (B, H, T, D)
  const Tensor k = split_heads(parts[1]);                        // (B, H, S, D), S = T
  const Tensor v = split_heads(parts[2]);                        // (B, H, S, D)
  const Tensor scores = my_scores(q, k) / std::sqrt(double{D});  // (B, H, T, S)
  const Tensor weights = softmax(hide_future(scores), -1);       // (B, H, T, S)
  return merge_heads(matmul(weights, v)) + in[2];                // (B, T, C)
}
