// Stage 8: causal attention of several heads, side by side in the channels.
//
//   channel h D + d of q, k and v is channel d of head h; so are those of the result.

#include "exercise.hpp"

using namespace exercise;

// qkv (B, T, 3C): q, k and v concatenated, C = H D -> (B, T, C)
Tensor my_heads(const Tensor& qkv, std::size_t n_head) {
  const std::size_t b = qkv.size(0), t = qkv.size(1), c = qkv.size(2) / 3, d = c / n_head;
  const auto split = [&](const Tensor& x) -> Tensor {  // (B, T, C) -> (B, H, T, D)
    return todo();
  };
  const auto merge = [&](const Tensor& x) -> Tensor {  // (B, H, T, D) -> (B, T, C)
    return todo();
  };
  const auto [q, k, v] = chunk<3>(qkv, -1);
  const Tensor scores =
      matmul(split(q), transpose(split(k), -2, -1)) / std::sqrt(static_cast<double>(d));
  const Tensor weights = softmax(masked_fill(scores, nn::future(t, t), -INFINITY), -1);
  return merge(matmul(weights, split(v)));
}
