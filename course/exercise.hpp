#pragma once
// Shared by the exercises of the course: the functions that you write, and correct parts of an
// attention.  `scripts/learn check N` compiles your file with checks/NN_name.cpp, which calls your
// function: it must keep its name, arguments and result.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <span>
#include <utility>
#include <vector>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/layers.hpp>
#include <xgrad/nn/module.hpp>
#include <xgrad/optim/optimizers.hpp>

namespace exercise {

using namespace xgrad;
using Inputs = std::vector<Tensor>;

/// The error of todo().
struct NotWritten {};
/// The place of your lines.
template <class T = Tensor>
T todo() {
  throw NotWritten();
}

/// Stage 3: a number in a graph.
struct Number {
  double value = 0;
  double grad = 0;  ///< d output / d this number, once known
  /// The numbers that it was computed from, and d this number / d that input.
  std::vector<std::pair<Number*, double>> inputs = {};
};

/// Stage 9: a parameter and Adam's state for it.
struct Adam {
  Tensor p;  ///< the parameter
  Tensor m;  ///< the running mean of the gradient
  Tensor v;  ///< the running mean of its square
};
constexpr double lr = 0.1, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

// ---- for the attention layers with one mistake each (stage 11) ----

// Batch B = 4, time T = 3, heads H = 2 of D = 3 channels each, so C = H D = 6.
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
/// weight (3C, C), bias (C,), which is optional -> (B, T, C).
inline Tensor reference(const Inputs& in) {
  const Scope scope("attn");
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);  // 3 of (B, T, C)
  const Tensor q = split_heads(parts[0]), k = split_heads(parts[1]), v = split_heads(parts[2]);
  const Tensor scores = matmul(q, transpose(k, -2, -1)) / std::sqrt(double{D});  // (B, H, T, T)
  const Tensor weights = softmax(hide_future(scores), -1);                       // (B, H, T, T)
  const Tensor y = merge_heads(matmul(weights, v));                              // (B, T, C)
  return in.size() > 2 ? y + in[2] : y;
}

}  // namespace exercise

// The functions that you write.
double slope(double x);                                                                  // 1
std::array<double, 2> gradients(double a, double b);                                     // 2
void my_backward(const std::vector<exercise::Number*>& numbers);                         // 3
xgrad::Tensor my_add(const xgrad::Tensor& x, const xgrad::Tensor& bias);                 // 4
xgrad::Tensor my_softmax(const xgrad::Tensor& x);                                        // 5
xgrad::Tensor my_attention(const xgrad::Tensor& q, const xgrad::Tensor& k,               // 6
                           const xgrad::Tensor& v);                                      //
xgrad::Tensor my_causal_attention(const xgrad::Tensor& q, const xgrad::Tensor& k,        // 7
                                  const xgrad::Tensor& v);                               //
xgrad::Tensor my_heads(const xgrad::Tensor& qkv, std::size_t n_head);                    // 8
exercise::Adam my_adam(const exercise::Adam& a, const xgrad::Tensor& g, int t);          // 9
void my_training(const xgrad::nn::Linear& model, xgrad::optim::SGD& optimizer,           // 10
                 const xgrad::Tensor& x, const xgrad::Tensor& y, int steps);             //
double my_gradcheck(const std::function<double(const std::vector<double>&)>& f,          // 11
                    const std::vector<double>& x, const std::vector<double>& gradient);  //
xgrad::Tensor my_cube(const xgrad::Tensor& x);                                           // 12
xgrad::Tensor attention(const exercise::Inputs& in);                                     // 11.1 ...
xgrad::Tensor attention_weights(const exercise::Inputs& in, double p);                   // 11.11
xgrad::Tensor dropped_attention(const exercise::Inputs& in, double p);                   // 11.12
