#pragma once
// What the exercises share: the inputs, the parts of an attention that are right, the attention
// that theirs are held against, and how what was found is printed.
//
// Sizes: batch B = 4, time T = 3, heads H = 2 of D = 3 channels each, so C = H D = 6.

#include <cmath>
#include <cstdint>
#include <iostream>
#include <vector>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/masks.hpp>

namespace exercise {

using namespace xgrad;
using Inputs = std::vector<Tensor>;

constexpr std::size_t B = 4, T = 3, H = 2, D = 3, C = H * D;

/// Normal, with this standard deviation.
inline Tensor random(const Dims& sizes, std::uint64_t seed, double deviation = 1) {
  Generator generator(seed);
  return (randn(sizes, generator, DType::float64) * deviation).requires_grad_();
}
/// x (B, T, C), weight (3C, C) of the projection to q, k and v, bias (C,) of the output.
inline Inputs inputs() {
  return {random({B, T, C}, 1), random({3 * C, C}, 2, 1 / std::sqrt(double{C})), random({C}, 3)};
}

/// (B, T, C) -> (B, H, T, D): channel h D + d is channel d of head h.
inline Tensor split_heads(const Tensor& x) {
  return permute(reshape(x, {B, T, H, D}), {0, 2, 1, 3});
}
/// (B, H, T, D) -> (B, T, C), the inverse.
inline Tensor merge_heads(const Tensor& x) { return reshape(permute(x, {0, 2, 1, 3}), {B, T, C}); }
/// (..., T, T): -inf where the key is later than the query.
inline Tensor hide_future(const Tensor& scores) {
  return masked_fill(scores, nn::future(T, T), -INFINITY);
}

/// softmax(q kᵀ / √D, the future hidden) v + bias, of H heads side by side: x (B, T, C),
/// weight (3C, C), bias (C,) -> (B, T, C).
inline Tensor reference(const Inputs& in) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);  // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]), k = split_heads(parts[1]), v = split_heads(parts[2]);
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D});  // (B, H, T, T)
  const Tensor weights = softmax(hide_future(scores), -1);                       // (B, H, T, T)
  return merge_heads(matmul(weights, v)) + in[2];                                // (B, T, C)
}

/// Prints what a tool found; what main() returns, 0 if all is right.
template <class Found>
int report(const Found& found) {
  std::cout << found.message << '\n';
  return found ? 0 : 1;
}

}  // namespace exercise
