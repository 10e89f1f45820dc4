// Functions of one variable and of few, each a formula and its derivative, for SIMD registers and
// for Tensors: simd.hpp.  Those of every network: elementwise.cpp.

#include <cmath>
#include <numbers>
#include <xgrad/autograd/kernels/lanes.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>

namespace xgrad {

using enum Uses;

// The C library's functions, lane by lane: right to the last places and over the whole range, as
// xsimd's are not.  (No templates, for these are preferred to xsimd's.)
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

// Its name, its value at a, what its derivative uses and that derivative, of g.
#define XGRAD_FUNCTION(f, value, uses, derivative)                               \
  Tensor f(const Tensor& x) {                                                    \
    return elementwise(                                                          \
        #f, x, [](const auto& a) { return value; },                              \
        partial<uses>([](const auto& g, const auto& a) { return derivative; })); \
  }
#define XGRAD_STEPS(f, value)                                        \
  Tensor f(const Tensor& x) {                                        \
    return elementwise(                                              \
        #f, x, [](const auto& a) { return value; }, ZeroGradient{}); \
  }

XGRAD_FUNCTION(square, (a * a), A, (a + a) * g)
XGRAD_FUNCTION(reciprocal, c(a, 1) / a, Y, -a* a* g)
XGRAD_FUNCTION(log2, log2(a), A, g / (a * c(a, std::numbers::ln2)))
XGRAD_FUNCTION(log10, log10(a), A, g / (a * c(a, std::numbers::ln10)))
XGRAD_FUNCTION(tan, tan(a), Y, (c(a, 1) + a * a) * g)
XGRAD_FUNCTION(atan, atan(a), A, g / (c(a, 1) + a * a))
XGRAD_FUNCTION(sinh, sinh(a), A, cosh(a) * g)
XGRAD_FUNCTION(cosh, cosh(a), A, sinh(a) * g)
XGRAD_FUNCTION(asinh, asinh(a), A, g / sqrt(c(a, 1) + a * a))
XGRAD_STEPS(sign, where(a > c(a, 0), c(a, 1), where(a < c(a, 0), c(a, -1), c(a, 0))))
XGRAD_STEPS(floor, floor(a))
XGRAD_STEPS(ceil, ceil(a))
XGRAD_STEPS(round, nearbyint(a))
#undef XGRAD_FUNCTION
#undef XGRAD_STEPS

Tensor hardsigmoid(const Tensor& x) { return clamp(x / 6.0 + 0.5, 0, 1); }

// At a tie without a difference, which of two infinities would be NaN.
Tensor logaddexp(const Tensor& a, const Tensor& b) {
  return elementwise(
      "logaddexp", a, b,
      [](const auto& x, const auto& y) {
        return where(x == y, x + c(x, std::numbers::ln2), maximum(x, y) + log1p(exp(-abs(x - y))));
      },
      partial<A, B>([](const auto& g, const auto& x, const auto& y) { return g * sigmoid(x - y); }),
      partial<A, B>(
          [](const auto& g, const auto& x, const auto& y) { return g * sigmoid(y - x); }));
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

// From the nearer end.
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
