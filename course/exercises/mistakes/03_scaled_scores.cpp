// Stage 11.3: scaled scores with a backward of its own.  One mistake.
//
//   scores_ts = Σ_d q_td k_sd / √D, so that their variance does not grow with D.

#include "exercise.hpp"

using namespace exercise;

// q (B, H, T, D), k (B, H, S, D) -> (B, H, T, S)
Tensor my_scores(const Tensor& q, const Tensor& k) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  const auto forward = [scale](std::span<const Tensor> in) {
    return matmul(in[0], transpose(in[1], -2, -1)) * scale;
  };
  const auto backward = [q = Saved(q), k = Saved(k)](Context& ctx) {
    const Tensor g = ctx.gradient();                       // (B, H, T, S)
    ctx.add(0, matmul(g, k.tensor()));                     // that of q, (B, H, T, D)
    ctx.add(1, matmul(transpose(g, -2, -1), q.tensor()));  // that of k, (B, H, S, D)
  };
  return record("my_scores", {q, k}, forward, backward);
}

// x (B, T, C), weight (3C, C), bias (C,) -> (B, T, C)
Tensor attention(const Inputs& in) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);    // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]);                   // (B, H, T, D)
  const Tensor k = split_heads(parts[1]);                   // (B, H, S, D), S = T
  const Tensor v = split_heads(parts[2]);                   // (B, H, S, D)
  const Tensor scores = my_scores(q, k);                    // (B, H, T, S)
  const Tensor weights = softmax(hide_future(scores), -1);  // (B, H, T, S)
  return merge_heads(matmul(weights, v)) + in[2];           // (B, T, C)
}
