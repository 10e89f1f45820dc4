// Comparisons, tests of masks and values, which have no derivative, and elementwise ops that choose
// by a comparison.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include "../fail.hpp"
#include "../kernels/lines.hpp"
#include "elementwise.hpp"
#include "rules.hpp"

namespace xgrad {

// ---- comparisons ----

using detail::broadcast;

// f(a, b), or f(a, a).
template <std::size_t N, class F>
static Mask compare(const char* op, const std::array<Tensor, N>& x, const F& f) {
  return detail::compute(op, x, [&, &a = x.front(), &b = x.back()]<class T>() {
    return broadcast(op, a.shape(), a.template data<T>(), b.shape(), b.template data<T>(), f);
  });
}

// A number is rounded to the tensor's dtype, as in PyTorch: 0.1 equals a float32 0.1.
#define XGRAD_COMPARISON(op, F)                                                        \
  Mask operator op(const Tensor& a, const Tensor& b) {                                 \
    return compare("operator" #op, std::array{a, b}, F<>());                           \
  }                                                                                    \
  Mask operator op(const Tensor& a, double b) { return a op detail::number(b, a); }    \
  Mask operator op(const IndexOperand& a, const IndexOperand& b) {                     \
    return broadcast("operator" #op, a.value.shape(), a.value.data(), b.value.shape(), \
                     b.value.data(), F<>());                                           \
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
  const auto negation = [](bool v, bool) { return !v; };
  return broadcast("operator~", a.shape(), a.data(), a.shape(), a.data(), negation);
}

// ---- values ----

#define XGRAD_TEST(name)                                                                     \
  Mask name(const Tensor& x) {                                                               \
    return compare(#name, std::array{x}, [](auto v, auto) -> bool { return std::name(v); }); \
  }
XGRAD_TEST(isfinite)
XGRAD_TEST(isinf)
XGRAD_TEST(isnan)
#undef XGRAD_TEST

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

// Along a dimension, or for the flattened x without one.
static Indices place(const char* op, const Tensor& x, std::optional<std::int64_t> dim, bool largest,
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

Indices argmax(const Tensor& x) { return place("argmax", x, {}, true, false); }
Indices argmin(const Tensor& x) { return place("argmin", x, {}, false, false); }
Indices argmax(const Tensor& x, Dim dim, bool keepdim) {
  return place("argmax", x, dim, true, keepdim);
}
Indices argmin(const Tensor& x, Dim dim, bool keepdim) {
  return place("argmin", x, dim, false, keepdim);
}

using enum Uses;

// ---- by comparison ----

// The share of the gradient that goes to an operand: none if the other is chosen, half at a tie,
// else all; with a NaN both get all of it.
template <class Condition, class T>
static T share(const Condition& other, const Condition& tie, const T& g) {
  return where(other, c(g, 0), where(tie, g * c(g, 0.5), g));
}

template <bool larger>
static Tensor extreme(const char* op, const Tensor& a, const Tensor& b) {
  const auto gradient = [](const auto& g, const auto& own, const auto& other) {
    return share(larger ? own < other : own > other, own == other, g);
  };
  return elementwise(
      op, a, b, [](const auto& x, const auto& y) { return larger ? maximum(x, y) : minimum(x, y); },
      partial<A, B>(gradient), partial<B, A>(gradient));
}

XGRAD_RULE(maximum, "max(a, b)",
           {"g where a > b, g / 2 at a tie, else 0", "g where b > a, g / 2 at a tie, else 0"});
Tensor maximum(const Tensor& a, const Tensor& b) { return extreme<true>("maximum", a, b); }
XGRAD_RULE(minimum, "min(a, b)",
           {"g where a < b, g / 2 at a tie, else 0", "g where b < a, g / 2 at a tie, else 0"});
Tensor minimum(const Tensor& a, const Tensor& b) { return extreme<false>("minimum", a, b); }

Tensor clamp(const Tensor& x, std::optional<double> min, std::optional<double> max) {
  check<ValueError>(min || max, "clamp: at least one of min and max must be given");
  constexpr double unbounded = std::numeric_limits<double>::infinity();
  const double low = min.value_or(-unbounded), high = max.value_or(unbounded);
  return elementwise(
      "clamp", x, [low, high](const auto& a) { return minimum(maximum(a, c(a, low)), c(a, high)); },
      partial<A>([min, max](const auto& g, const auto& a) {
        if (!min)
          return where(a < c(a, *max), g, c(g, 0));
        if (!max)
          return where(a > c(a, *min), g, c(g, 0));
        return where((a > c(a, *min)) & (a < c(a, *max)), g, c(g, 0));
      }));
}

Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max) {
  check<ValueError>(min.defined() || max.defined(),
                    "clamp: at least one of min and max must be defined");
  if (!max.defined())
    return extreme<true>("clamp", x, min);
  if (!min.defined())
    return extreme<false>("clamp", x, max);
  return elementwise<3>(
      "clamp", {x, min, max},
      [](const auto& a, const auto& l, const auto& h) { return minimum(maximum(a, l), h); },
      partial<A, B, C>([](const auto& g, const auto& a, const auto& l, const auto& h) {
        return share((l > h) | (a < l) | (a > h), (l < h) & ((a == l) | (a == h)), g);
      }),
      partial<A, B, C>([](const auto& g, const auto& a, const auto& l, const auto& h) {
        return where((l <= h) & (a < l), g, where((l < h) & (a == l), g * c(g, 0.5), c(g, 0)));
      }),
      partial<A, B, C>([](const auto& g, const auto& a, const auto& l, const auto& h) {
        return where((l > h) | ((l <= h) & (a > h)), g,
                     where((l < h) & (a == h), g * c(g, 0.5), c(g, 0)));
      }));
}

// ---- by a mask ----

static const Tensor& defined(const char* op, const char* name, const Tensor& x) {
  check<ValueError>(x.defined(), "{}: {} is undefined", op, name);
  return x;
}

static Tensor choose(const char* op, const Mask& mask, const Tensor& a, const Tensor& b) {
  detail::check_operands(op, std::array{a, b});
  return record(
      op, {a, b},
      [op, mask]<class T>(std::span<const Tensor> in) {
        const Shape shape =
            broadcast_shapes(broadcast_shapes(mask.shape(), in[0].shape(), op), in[1].shape(), op);
        auto y = empty_array<T>(shape);
        kernels::choose<T>(shape, {mask.shape(), mask.data()}, {in[0].shape(), in[0].data<T>()},
                           {in[1].shape(), in[1].data<T>()}, y.data());
        return y;
      },
      [mask](Context& ctx) {
        const Tensor& g = ctx.gradient();
        const Tensor zero = scalar(0, g.dtype());
        if (ctx.needs(0))
          ctx.add(0, where(mask, g, zero));
        if (ctx.needs(1))
          ctx.add(1, where(mask, zero, g));
      },
      {.broadcasts = true});
}

Tensor where(const Mask& condition, const Tensor& a, const Tensor& b) {
  return choose("where", condition, defined("where", "a", a), defined("where", "b", b));
}
Tensor where(const Mask& condition, const Tensor& a, double b) {
  return where(condition, a, detail::number(b, a));
}
Tensor where(const Mask& condition, double a, const Tensor& b) {
  return where(condition, detail::number(a, b), b);
}

XGRAD_RULE(masked_fill, "a where the mask is true, else b",
           {"Σ g where the mask is true", "g where the mask is false, else 0"},
           "a is the value and b is x; masked elements of x get 0.");
Tensor masked_fill(const Tensor& x, const Mask& mask, double value) {
  return masked_fill(x, mask, detail::number(value, x));
}

Tensor masked_fill(const Tensor& x, const Mask& mask, const Tensor& value) {
  defined("masked_fill", "x", x);
  if (defined("masked_fill", "value", value).dim() > 0)
    fail<ShapeError>("masked_fill: value has shape {} but must be 0-d; where() takes any",
                     to_string(value.shape()));
  return choose("masked_fill", mask, value, x);
}

}  // namespace xgrad
