// Elementwise ops.  Each derivative is one formula with two readings: see simd.hpp.

#include <xgrad/autograd/ops/elementwise.hpp>

#include <cmath>
#include <numbers>
#include <xgrad/autograd/check.hpp>

namespace xgrad {

using enum Uses;

Tensor c(const Tensor& x, double v) { return scalar(v, x.dtype()); }

void detail::check_same_dtype(const char* op, std::span<const Tensor> inputs) {
  for (const Tensor& x : inputs)
    if (x.dtype() != inputs[0].dtype())
      fail<DTypeError>("{}: operands are {} and {}; convert one with to()", op, to_string(inputs[0].dtype()),
                       to_string(x.dtype()));
}

// ---- arithmetic -------------------------------------------------------------------------------------------------------

Tensor add(const Tensor& a, const Tensor& b) {
  return elementwise(
      "add", a, b, [](const auto& x, const auto& y) { return x + y; }, PassThrough{}, PassThrough{});
}

Tensor sub(const Tensor& a, const Tensor& b) {
  return elementwise(
      "sub", a, b, [](const auto& x, const auto& y) { return x - y; }, PassThrough{},
      partial<>([](const auto& g) { return -g; }));
}

Tensor mul(const Tensor& a, const Tensor& b) {
  return elementwise(
      "mul", a, b, [](const auto& x, const auto& y) { return x * y; },
      partial<B>([](const auto& g, const auto& y) { return g * y; }),
      partial<A>([](const auto& g, const auto& x) { return g * x; }));
}

Tensor div(const Tensor& a, const Tensor& b) {
  return elementwise(
      "div", a, b, [](const auto& x, const auto& y) { return x / y; },
      partial<B>([](const auto& g, const auto& y) { return g / y; }),
      partial<A, B>([](const auto& g, const auto& x, const auto& y) { return -g * (x / y) / y; }));
}

Tensor neg(const Tensor& x) {
  return elementwise(
      "neg", x, [](const auto& a) { return -a; }, partial<>([](const auto& g) { return -g; }));
}
}
