// Elementwise ops as rows: name, value, derivative.  The same text is the op's code, its rule on
// the graph page, and the source of scripts/mutate's mutants.
//
// a and b are the inputs, y is the output, g the gradient of y.  After each derivative come the
// values that it uses: only these are kept for the backward.

#include <limits>
#include <numbers>
#include "../fail.hpp"
#include "../kernels/erf.hpp"
#include "../kernels/simd.hpp"
#include "elementwise.hpp"
#include "rules.hpp"

#define XGRAD_USE_a Uses::A
#define XGRAD_USE_b Uses::B
#define XGRAD_USE_y Uses::Y
#define XGRAD_USE(letter) XGRAD_USE_##letter
#define XGRAD_PARTIAL1(derivative, u) \
  partial<XGRAD_USE(u)>([=](const auto& g, const auto& u) { return derivative; })
#define XGRAD_PARTIAL2(derivative, u, v) \
  partial<XGRAD_USE(u), XGRAD_USE(v)>(   \
      [=](const auto& g, const auto& u, const auto& v) { return derivative; })
#define XGRAD_FOURTH(_1, _2, _3, fourth, ...) fourth
#define XGRAD_PARTIAL_OF(...) \
  XGRAD_FOURTH(__VA_ARGS__, XGRAD_PARTIAL2, XGRAD_PARTIAL1, )(__VA_ARGS__)
#define XGRAD_UNWRAPPED(...) __VA_ARGS__
#define XGRAD_PARTIAL(derivative, uses) XGRAD_PARTIAL_OF(derivative, XGRAD_UNWRAPPED uses)

/// An op of one input: its derivative uses (a) or (y).
#define XGRAD_UNARY(op, value, derivative, uses) \
  XGRAD_UNARY_OF(op, (const Tensor& x), value, derivative, uses)
/// The same with more parameters: (const Tensor& x, double alpha).
#define XGRAD_UNARY_OF(op, parameters, value, derivative, uses)                         \
  static const detail::StatedRule op##_rule({#op, #value, {#derivative}});              \
  Tensor op parameters {                                                                \
    return elementwise(                                                                 \
        #op, x, [=](const auto& a) { return value; }, XGRAD_PARTIAL(derivative, uses)); \
  }
/// An op of one input whose derivative is 0.
#define XGRAD_STEPS(op, value)                                                       \
  static const detail::StatedRule op##_rule({#op, #value, {"0"}});                   \
  Tensor op(const Tensor& x) {                                                       \
    return elementwise(#op, x, [](const auto& a) { return value; }, ZeroGradient{}); \
  }
/// An op of two inputs with its derivatives by a and by b; each uses one or two of (a, b, y).
#define XGRAD_BINARY(op, value, by_a, uses_a, by_b, uses_b)                 \
  static const detail::StatedRule op##_rule({#op, #value, {#by_a, #by_b}}); \
  Tensor op(const Tensor& p, const Tensor& q) {                             \
    return elementwise(                                                     \
        #op, p, q, [](const auto& a, const auto& b) { return value; },      \
        XGRAD_PARTIAL(by_a, uses_a), XGRAD_PARTIAL(by_b, uses_b));          \
  }

namespace xgrad {

using enum Uses;

// The C library's functions, lane by lane: accurate over the whole range, which xsimd's are not.
// (No templates, so that overloading prefers them to xsimd's.)
#define XGRAD_LANES(f)                                              \
  static simd::Batch<float> f(const simd::Batch<float>& x) {        \
    return kernels::by_lane([](float v) { return std::f(v); }, x);  \
  }                                                                 \
  static simd::Batch<double> f(const simd::Batch<double>& x) {      \
    return kernels::by_lane([](double v) { return std::f(v); }, x); \
  }
XGRAD_LANES(tan)
XGRAD_LANES(atan)
XGRAD_LANES(sinh)
XGRAD_LANES(cosh)
XGRAD_LANES(asinh)
XGRAD_LANES(log2)
XGRAD_LANES(log10)
#undef XGRAD_LANES

// clang-format off

// ---- arithmetic and powers ----

XGRAD_BINARY(mul, a * b, g * b, (b), g * a, (a))
XGRAD_BINARY(div, a / b, g / b, (b), -g * (a / b) / b, (a, b))
XGRAD_UNARY(square, (a * a), (a + a) * g, (a))
XGRAD_UNARY(reciprocal, c(a, 1) / a, -y * y * g, (y))
XGRAD_UNARY(sqrt, sqrt(a), g / (y + y), (y))
XGRAD_UNARY(rsqrt, c(a, 1) / sqrt(a), g * (c(y, -0.5) * (y * y * y)), (y))

// ---- exponentials and logarithms ----

XGRAD_UNARY(exp, exp(a), g * y, (y))
XGRAD_UNARY(expm1, expm1(a), g * exp(a), (a))
XGRAD_UNARY(log, log(a), g / a, (a))
XGRAD_UNARY(log1p, log1p(a), g / (a + c(a, 1)), (a))
XGRAD_UNARY(log2, log2(a), g / (a * c(a, std::numbers::ln2)), (a))
XGRAD_UNARY(log10, log10(a), g / (a * c(a, std::numbers::ln10)), (a))
// At a tie a - b is not used: of two infinities it is NaN.
XGRAD_BINARY(logaddexp, where(a == b, a + c(a, std::numbers::ln2), maximum(a, b) + log1p(exp(-abs(a - b)))),
             g * sigmoid(a - b), (a, b), g * sigmoid(b - a), (a, b))

// ---- trigonometric and hyperbolic ----

XGRAD_UNARY(sin, sin(a), g * cos(a), (a))
XGRAD_UNARY(cos, cos(a), -(g * sin(a)), (a))
XGRAD_UNARY(tan, tan(a), (c(y, 1) + y * y) * g, (y))
XGRAD_UNARY(atan, atan(a), g / (c(a, 1) + a * a), (a))
XGRAD_UNARY(sinh, sinh(a), cosh(a) * g, (a))
XGRAD_UNARY(cosh, cosh(a), sinh(a) * g, (a))
XGRAD_UNARY(asinh, asinh(a), g / sqrt(c(a, 1) + a * a), (a))
// The derivative of tanh is 4 sigmoid'(2 a); 1 - y^2 would be 0 where y is rounded to 1.
XGRAD_UNARY(tanh, tanh(a), g * (c(a, 4) * sigmoid_slope(c(a, 2) * a)), (a))
XGRAD_UNARY(erf, error_function(a), g * (c(a, 2 * std::numbers::inv_sqrtpi) * exp(-(a * a))), (a))

// ---- activations ----

// log(1 + exp(x)) without overflow.  On Tensors this is the op itself, because the derivatives of
// maximum and abs at 0 would make a wrong one.
template <Lanes B>
static B log_one_plus_exp(const B& x) {
  return maximum(x, c(x, 0)) + log1p(exp(-abs(x)));
}
static Tensor log_one_plus_exp(const Tensor& x) {
  return softplus(x, 1, std::numeric_limits<double>::infinity());
}

XGRAD_UNARY(sigmoid, sigmoid(a), g * sigmoid_slope(a), (a))
// An op, because 1 - 2 sigmoid(a) in its derivative would cancel where sigmoid is about 1/2: it is
// -tanh(a / 2).
XGRAD_UNARY(sigmoid_slope, sigmoid_slope(a), -(g * (tanh(c(a, 0.5) * a) * sigmoid_slope(a))), (a))
XGRAD_UNARY(relu, where(a <= c(a, 0), c(a, 0), a), where(y <= c(y, 0), c(g, 0), g), (y))  // NaN stays NaN
XGRAD_UNARY(silu, a * sigmoid(a), g * (sigmoid(a) + a * sigmoid_slope(a)), (a))
XGRAD_UNARY(logsigmoid, -log_one_plus_exp(-a), g * sigmoid(-a), (a))
XGRAD_UNARY(mish, a * tanh(log_one_plus_exp(a)),
            g * (tanh(log_one_plus_exp(a)) +
                 a * (sigmoid(a) * (c(a, 4) * sigmoid_slope(c(a, 2) * log_one_plus_exp(a))))), (a))
XGRAD_UNARY_OF(softplus, (const Tensor& x, double beta, double threshold),
               where(c(a, beta) * a > c(a, threshold), a, log_one_plus_exp(c(a, beta) * a) / c(a, beta)),
               where(c(a, beta) * a > c(a, threshold), g, g * sigmoid(c(a, beta) * a)), (a))
// exp is not computed for large a: its infinity, though not chosen, would make a second derivative
// NaN.
XGRAD_UNARY_OF(elu, (const Tensor& x, double alpha),
               where(a > c(a, 0), a, c(a, alpha) * expm1(where(a > c(a, 0), c(a, 0), a))),
               where(a <= c(a, 0), g * (c(a, alpha) * exp(where(a <= c(a, 0), a, c(a, 0)))), g), (a))
XGRAD_UNARY_OF(leaky_relu, (const Tensor& x, double negative_slope),
               where(a > c(a, 0), a, c(a, negative_slope) * a),
               where(a > c(a, 0), g, g * c(g, negative_slope)), (a))

// ---- pieces ----

XGRAD_UNARY(abs, abs(a), where(a > c(a, 0), g, where(a < c(a, 0), -g, g * c(g, 0))), (a))
XGRAD_STEPS(sign, where(a > c(a, 0), c(a, 1), where(a < c(a, 0), c(a, -1), c(a, 0))))
XGRAD_STEPS(floor, floor(a))
XGRAD_STEPS(ceil, ceil(a))
XGRAD_STEPS(round, nearbyint(a))

// clang-format on

Tensor hardsigmoid(const Tensor& x) { return clamp(x / 6.0 + 0.5, 0, 1); }

Tensor hardtanh(const Tensor& x, double min, double max) {
  check<ValueError>(min <= max, "hardtanh: min {} is larger than max {}", min, max);
  return elementwise(
      "hardtanh", x,
      [min, max](const auto& a) { return minimum(maximum(a, c(a, min)), c(a, max)); },
      partial<A>([min, max](const auto& g, const auto& a) {
        return where((a <= c(a, min)) | (a >= c(a, max)), c(g, 0), g);
      }));
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  const auto factor = [value](const auto& g, const auto& other) {
    return g * (c(g, value) * other);
  };
  return elementwise<3>(
      "addcmul", {x, a, b},
      [value](const auto& z, const auto& p, const auto& q) { return z + c(z, value) * p * q; },
      PassThrough{}, partial<C>(factor), partial<B>(factor));
}

// Computed from the nearer end.
Tensor lerp(const Tensor& x, const Tensor& end, const Tensor& weight) {
  return elementwise<3>(
      "lerp", {x, end, weight},
      [](const auto& a, const auto& b, const auto& w) {
        return where(abs(w) < c(w, 0.5), a + w * (b - a), b - (b - a) * (c(w, 1) - w));
      },
      partial<C>([](const auto& g, const auto& w) { return g * (c(w, 1) - w); }),
      partial<C>([](const auto& g, const auto& w) { return g * w; }),
      partial<A, B>([](const auto& g, const auto& a, const auto& b) { return g * (b - a); }));
}

}  // namespace xgrad
