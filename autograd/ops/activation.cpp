// Relatives of relu and silu.  All are elementwise: each derivative is one formula, for SIMD
// registers and for Tensors.

#include <limits>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>

namespace xgrad {

using enum Uses;

// ---- smooth ----

namespace {

// log(1 + exp(x)) without overflow.  Read on Tensors its derivative would be wrong at 0, where
// those of maximum and abs are choices, so there it is the op.
template <Lanes B>
B log_one_plus_exp(const B& x) {
  return maximum(x, c(x, 0)) + log1p(exp(-abs(x)));
}
Tensor log_one_plus_exp(const Tensor& x) {
  return softplus(x, 1, std::numeric_limits<double>::infinity());
}

}  // namespace

Tensor softplus(const Tensor& x, double beta, double threshold) {
  return elementwise(
      "softplus", x,
      [beta, threshold](const auto& a) {
        const auto scaled = c(a, beta) * a;
        return where(scaled > c(a, threshold), a, log_one_plus_exp(scaled) / c(a, beta));
      },
      partial<A>([beta, threshold](const auto& g, const auto& a) {
        const auto scaled = c(a, beta) * a;
        return where(scaled > c(a, threshold), g, g * sigmoid(scaled));
      }));
}

Tensor mish(const Tensor& x) {
  return elementwise(
      "mish", x, [](const auto& a) { return a * tanh(log_one_plus_exp(a)); },
      partial<A>([](const auto& g, const auto& a) {
        const auto s = log_one_plus_exp(a);
        return g * (tanh(s) + a * (sigmoid(a) * (c(a, 4) * sigmoid_slope(c(a, 2) * s))));
      }));
}

Tensor logsigmoid(const Tensor& x) {
  return elementwise(
      "logsigmoid", x, [](const auto& a) { return -log_one_plus_exp(-a); },
      partial<A>([](const auto& g, const auto& a) { return g * sigmoid(-a); }));
}

// ---- of pieces ----

// exp is not taken of large x: its infinity, though not chosen, would make a second derivative NaN.
Tensor elu(const Tensor& x, double alpha) {
  return elementwise(
      "elu", x,
      [alpha](const auto& a) {
        return where(a > c(a, 0), a, c(a, alpha) * expm1(where(a > c(a, 0), c(a, 0), a)));
      },
      partial<A>([alpha](const auto& g, const auto& a) {
        return where(a <= c(a, 0), g * (c(a, alpha) * exp(where(a <= c(a, 0), a, c(a, 0)))), g);
      }));
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return elementwise(
      "leaky_relu", x,
      [negative_slope](const auto& a) { return where(a > c(a, 0), a, c(a, negative_slope) * a); },
      partial<A>([negative_slope](const auto& g, const auto& a) {
        return where(a > c(a, 0), g, g * c(g, negative_slope));
      }));
}

Tensor hardtanh(const Tensor& x, double min, double max) {
  check<ValueError>(min <= max, "hardtanh: min {} is larger than max {}", min, max);
  return elementwise(
      "hardtanh", x,
      [min, max](const auto& a) { return minimum(maximum(a, c(a, min)), c(a, max)); },
      partial<A>([min, max](const auto& g, const auto& a) {
        return where((a <= c(a, min)) | (a >= c(a, max)), c(g, 0), g);
      }));
}

}  // namespace xgrad
