// Elementwise ops that choose.

#include <cmath>
#include <limits>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/rules.hpp>

namespace xgrad {

using enum Uses;

// ---- by comparison ----

namespace {

// The share of the gradient that goes to an operand: none if the other is chosen, half at a tie,
// else all; with a NaN both get all of it.
template <class Condition, class T>
T share(const Condition& other, const Condition& tie, const T& g) {
  return where(other, c(g, 0), where(tie, g * c(g, 0.5), g));
}

template <bool larger>
Tensor extreme(const char* op, const Tensor& a, const Tensor& b) {
  const auto gradient = [](const auto& g, const auto& own, const auto& other) {
    return share(larger ? own < other : own > other, own == other, g);
  };
  return elementwise(
      op, a, b, [](const auto& x, const auto& y) { return larger ? maximum(x, y) : minimum(x, y); },
      partial<A, B>(gradient), partial<B, A>(gradient));
}

}  // namespace

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

namespace {

const Tensor& defined(const char* op, const char* name, const Tensor& x) {
  check<ValueError>(x.defined(), "{}: {} is undefined", op, name);
  return x;
}

Tensor choose(const char* op, const Mask& mask, const Tensor& a, const Tensor& b) {
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

}  // namespace

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
           "a is the value and b is x, whose masked elements get 0.");
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
