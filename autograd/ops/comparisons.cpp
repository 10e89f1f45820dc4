// Comparisons, and questions about masks and values.  Nothing here is differentiable.

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/reduce.hpp>
#include <xgrad/autograd/ops/broadcast.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>

namespace xgrad {

// ---- comparisons ----

namespace {

using detail::broadcast;

template <class F>
Mask compare(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  return detail::compute(op, std::array{a, b}, [&]<class T>() {
    return broadcast(op, a.shape(), a.data<T>(), b.shape(), b.data<T>(), f);
  });
}

// The number is taken in x's dtype, as in PyTorch: 0.1 equals a float32 0.1.
template <class F>
Mask compare(const char* op, const Tensor& x, double number, const F& f) {
  return detail::compute(op, std::array{x}, [&]<class T>() {
    const T one = static_cast<T>(number);
    return broadcast(op, x.shape(), x.data<T>(), {}, &one, f);
  });
}

}  // namespace

#define XGRAD_COMPARISON(op, F)                                                                \
  Mask operator op(const Tensor& a, const Tensor& b) {                                         \
    return compare("operator" #op, a, b, F<>());                                               \
  }                                                                                            \
  Mask operator op(const Tensor& a, double b) { return compare("operator" #op, a, b, F<>()); } \
  Mask operator op(const IndexOperand& a, const IndexOperand& b) {                             \
    return broadcast("operator" #op, a.value.shape(), a.value.data(), b.value.shape(),         \
                     b.value.data(), F<>());                                                   \
  }
XGRAD_COMPARISON(==, std::equal_to)
XGRAD_COMPARISON(!=, std::not_equal_to)
XGRAD_COMPARISON(<, std::less)
XGRAD_COMPARISON(<=, std::less_equal)
XGRAD_COMPARISON(>, std::greater)
XGRAD_COMPARISON(>=, std::greater_equal)
#undef XGRAD_COMPARISON

// ---- masks ----

Mask operator&(const Mask& a, const Mask& b) {
  return broadcast("operator&", a.shape(), a.data(), b.shape(), b.data(), std::logical_and<>());
}
Mask operator|(const Mask& a, const Mask& b) {
  return broadcast("operator|", a.shape(), a.data(), b.shape(), b.data(), std::logical_or<>());
}
Mask operator~(const Mask& a) {
  auto out = empty_array<bool>(a.shape());
  std::transform(a.data(), a.data() + out.size(), out.data(), std::logical_not<>());
  return out;
}

// ---- values ----

Mask isfinite(const Tensor& x) {
  return compare("isfinite", x, 0, [](auto v, auto) -> bool { return std::isfinite(v); });
}
Mask isinf(const Tensor& x) {
  return compare("isinf", x, 0, [](auto v, auto) { return std::isinf(v); });
}
Mask isnan(const Tensor& x) {
  return compare("isnan", x, 0, [](auto v, auto) { return std::isnan(v); });
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol) {
  detail::check_operands("allclose", std::array{a, b});
  check<ValueError>(rtol >= 0 && atol >= 0, "allclose: rtol {} and atol {} must not be negative",
                    rtol, atol);
  if (a.shape() != b.shape())
    return false;
  const auto close = [rtol, atol](double x, double y) {
    const double distance = std::abs(x - y);
    return x == y || (std::isfinite(distance) && distance <= atol + rtol * std::abs(y));
  };
  return detail::compute("allclose", std::array{a, b}, [&]<class T>() {
    return std::equal(a.data<T>(), a.data<T>() + a.numel(), b.data<T>(), close);
  });
}

// ---- places ----

namespace {

// Along a dimension, or without one of the flattened x.
Indices place(const char* op, const Tensor& x, std::optional<std::int64_t> dim, bool largest,
              bool keepdim) {
  const std::size_t d = dim ? normalize_dim(*dim, x.dim(), op) : 0;
  const auto n = static_cast<std::size_t>(x.numel());
  const kernels::Axis axis = dim ? kernels::axis_of(x.shape(), d) : kernels::Axis{1, n, 1};
  if (axis.n == 0)
    fail<ShapeError>("{}: x {} has no elements to choose from", op, to_string(x.shape()));
  Shape shape;
  for (std::size_t k = 0; dim && k < x.shape().size(); ++k)
    if (k != d || keepdim)
      shape.push_back(k == d ? 1 : static_cast<std::size_t>(x.shape()[k]));
  auto y = empty_array<std::int64_t>(shape);
  detail::compute(op, std::array{x},
                  [&]<class T>() { kernels::arg_extremum(axis, x.data<T>(), largest, y.data()); });
  return y;
}

}  // namespace

Indices argmax(const Tensor& x) { return place("argmax", x, {}, true, false); }
Indices argmin(const Tensor& x) { return place("argmin", x, {}, false, false); }
Indices argmax(const Tensor& x, std::int64_t dim, bool keepdim) {
  return place("argmax", x, dim, true, keepdim);
}
Indices argmin(const Tensor& x, std::int64_t dim, bool keepdim) {
  return place("argmin", x, dim, false, keepdim);
}

}  // namespace xgrad
