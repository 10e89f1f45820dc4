#pragma once
// Elementwise ops as rows: name, value, derivative.  The same text is the code of the op, its rule
// on the graph page, and the place where scripts/mutate makes its mutants.
//
// a and b are the inputs, y is the output, g the gradient of y.  A derivative is followed by the
// values that it uses: only these are kept for the backward.

#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/rules.hpp>

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
/// The same with further parameters: (const Tensor& x, double alpha).
#define XGRAD_UNARY_OF(op, parameters, value, derivative, uses)                         \
  static const detail::StatedRule op##_rule({#op, #value, {#derivative}});              \
  Tensor op parameters {                                                                \
    return elementwise(                                                                 \
        #op, x, [=](const auto& a) { return value; }, XGRAD_PARTIAL(derivative, uses)); \
  }
/// An op of one input whose derivative is 0.
#define XGRAD_STEPS(op, value)                                        \
  static const detail::StatedRule op##_rule({#op, #value, {"0"}});    \
  Tensor op(const Tensor& x) {                                        \
    return elementwise(                                               \
        #op, x, [](const auto& a) { return value; }, ZeroGradient{}); \
  }
/// An op of two inputs with its derivatives by a and by b: each uses one or two of (a, b, y).
#define XGRAD_BINARY(op, value, by_a, uses_a, by_b, uses_b)                 \
  static const detail::StatedRule op##_rule({#op, #value, {#by_a, #by_b}}); \
  Tensor op(const Tensor& p, const Tensor& q) {                             \
    return elementwise(                                                     \
        #op, p, q, [](const auto& a, const auto& b) { return value; },      \
        XGRAD_PARTIAL(by_a, uses_a), XGRAD_PARTIAL(by_b, uses_b));          \
  }
