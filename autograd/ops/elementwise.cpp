// Elementwise ops.  Each derivative is one formula, for SIMD registers and for Tensors (simd.hpp).

#include "elementwise.hpp"

#include <cmath>
#include <numbers>
#include "../fail.hpp"
#include "../kernels/erf.hpp"
#include "../trace.hpp"
#include "rules.hpp"

namespace xgrad {

using enum Uses;

Tensor c(const Tensor& x, double v) { return scalar(v, x.dtype()); }

void detail::check_operands(const char* op, std::span<const Tensor> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    check<ValueError>(inputs[i].defined(), "{}: operand {} of {} is undefined", op, i + 1,
                      inputs.size());
  for (const Tensor& x : inputs)
    if (x.dtype() != inputs[0].dtype())
      fail<DTypeError>("{}: operands are {} and {}; convert one with to()", op,
                       to_string(inputs[0].dtype()), to_string(x.dtype()));
}

void detail::check_same_dtype(const char* op, const Tensor& x, const char* name,
                              const Tensor& other) {
  if (x.dtype() != other.dtype())
    fail<DTypeError>("{}: x is {} but {} is {}; convert one with to()", op, to_string(x.dtype()),
                     name, to_string(other.dtype()));
}

// ---- arithmetic ----

XGRAD_RULE(add, "a + b (or a + alpha b)", {"g", "g (times alpha)"}, "A sum passes g on.");
Tensor add(const Tensor& a, const Tensor& b) {
  return elementwise(
      "add", a, b, [](const auto& x, const auto& y) { return x + y; }, PassThrough{},
      PassThrough{});
}

XGRAD_RULE(sub, "a - b (or a - alpha b)", {"g", "-g (times alpha)"},
           "The gradient is passed on, to b with the other sign.");
Tensor sub(const Tensor& a, const Tensor& b) {
  return elementwise(
      "sub", a, b, [](const auto& x, const auto& y) { return x - y; }, PassThrough{},
      partial<>([](const auto& g) { return -g; }));
}

Tensor add(const Tensor& a, const Tensor& b, double alpha) {
  return elementwise(
      "add", a, b, [alpha](const auto& x, const auto& y) { return x + c(y, alpha) * y; },
      PassThrough{}, partial<>([alpha](const auto& g) { return g * c(g, alpha); }));
}

Tensor sub(const Tensor& a, const Tensor& b, double alpha) {
  return elementwise(
      "sub", a, b, [alpha](const auto& x, const auto& y) { return x - c(y, alpha) * y; },
      PassThrough{}, partial<>([alpha](const auto& g) { return g * c(g, -alpha); }));
}

XGRAD_RULE(neg, "-a", {"-g"});
Tensor neg(const Tensor& x) {
  return elementwise(
      "neg", x, [](const auto& a) { return a * c(a, -1); },  // xsimd's -a is 0 - a, which is not -0
      partial<>([](const auto& g) { return -g; }));
}

// a is an integer times b plus a remainder of b's sign.
template <class T>
static T floor_quotient(T a, T b) {
  if (b == 0)
    return a / b;
  const T remainder = std::fmod(a, b);
  const T whole = (a - remainder) / b;  // but for rounding
  const bool below = remainder != 0 && (remainder < 0) != (b < 0);
  return std::copysign(std::round(below ? whole - 1 : whole), a / b);
}

Tensor div(const Tensor& a, const Tensor& b, RoundingMode rounding_mode) {
  if (rounding_mode == RoundingMode::trunc)
    return elementwise(
        "div", a, b, [](const auto& x, const auto& y) { return trunc(x / y); }, ZeroGradient{},
        ZeroGradient{});
  return elementwise(
      "div", a, b,
      [](const auto& x, const auto& y) {
        return kernels::by_lane([](auto p, auto q) { return floor_quotient(p, q); }, x, y);
      },
      ZeroGradient{}, ZeroGradient{});
}

// ---- powers ----

// x to the power e.  xsimd's pow is exp(e log x), wrong in the last digits; the common exponents
// need no pow.
template <Lanes T>
static T raise(const T& x, const T& e) {
  return kernels::by_lane([](auto a, auto b) { return std::pow(a, b); }, x, e);
}
template <Lanes T>
static T raise(const T& x, double e) {
  if (e == 1)
    return x;
  if (e == 2)
    return x * x;
  if (e == 3)
    return x * x * x;
  if (e == 0.5)
    return sqrt(x);
  if (e == -1)
    return T(1) / x;
  return raise(x, c(x, e));
}
template <class E>
static Tensor raise(const Tensor& x, const E& e) {
  return pow(x, e);
}

XGRAD_RULE(pow, "a^b", {"g ⊙ b a^(b - 1)", "g ⊙ y log a"},
           "The power rule for the base; an exponent that is a Tensor gets y log a.");
Tensor pow(const Tensor& x, double exponent) {
  return elementwise(
      "pow", x, [exponent](const auto& a) { return raise(a, exponent); },
      partial<A>([exponent](const auto& g, const auto& a) {
        return exponent == 0 ? g * c(g, 0) : g * (c(a, exponent) * raise(a, exponent - 1));
      }));
}

Tensor pow(const Tensor& x, const Tensor& exponent) {
  return elementwise(
      "pow", x, exponent, [](const auto& a, const auto& e) { return raise(a, e); },
      partial<A, B>([](const auto& g, const auto& a, const auto& e) {
        return where(e == c(e, 0), c(g, 0), g * (e * raise(a, e - c(e, 1))));
      }),
      // for e > 0, 0^e does not change with e, but log would make it NaN
      partial<A, B, Y>([](const auto& g, const auto& a, const auto& e, const auto& y) {
        return where((a == c(a, 0)) & (e >= c(e, 0)), c(g, 0),
                     g * (y * log(where((a == c(a, 0)) & (e >= c(e, 0)), c(a, 1) + a, a))));
      }));
}

Tensor pow(double base, const Tensor& exponent) {
  return pow(scalar(base, exponent.dtype()), exponent);
}

// ---- activations ----

constexpr double inv_sqrt_2pi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
constexpr double sqrt_2_over_pi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double gelu_cubic = 0.044715;

template <class X>
static X normal_density(const X& x) {
  return c(x, inv_sqrt_2pi) * exp(c(x, -0.5) * x * x);
}
static Normal<Tensor> normal(const Tensor& x) {
  return {normal_density(x),
          elementwise(
              "normal_cdf", x, [](const auto& a) { return normal_cdf(a); },
              partial<A>([](const auto& g, const auto& a) { return g * normal_density(a); }))};
}

// The composition of both kinds for Decompose.
static Tensor composed_gelu(const Tensor& x, Gelu approximate) {
  const Scope scope("gelu");
  if (approximate == Gelu::erf)
    return x * (c(x, 0.5) * (c(x, 1) + erf(x * c(x, std::numbers::sqrt2 / 2))));
  const Tensor u = c(x, sqrt_2_over_pi) * (x + c(x, gelu_cubic) * x * x * x);
  return c(x, 0.5) * x * (c(x, 1) + tanh(u));
}

XGRAD_RULE(gelu, "a Φ(a)", {"g ⊙ (Φ(a) + a φ(a))"},
           "The product rule: φ is the normal density, Φ its integral.");
Tensor gelu(const Tensor& x, Gelu approximate) {
  if (Mode::current().decompose)
    return composed_gelu(x, approximate);
  if (approximate == Gelu::erf)
    return elementwise(
        "gelu", x, [](const auto& a) { return a * normal_cdf(a); },
        partial<A>([](const auto& g, const auto& a) {
          const auto n = normal(a);
          return g * (n.cdf + a * n.density);
        }));
  // y = a (1 + tanh u) / 2 = a sigmoid(2 u) with u = sqrt(2 / pi) (a + 0.044715 a^3)
  constexpr auto twice_u = [](const auto& a) {
    return c(a, 2 * sqrt_2_over_pi) * (a + c(a, gelu_cubic) * a * a * a);
  };
  return elementwise(
      "gelu", x, [=](const auto& a) { return a * sigmoid(twice_u(a)); },
      partial<A>([=](const auto& g, const auto& a) {
        const auto s = logistic(twice_u(a));
        const auto du = c(a, 2 * sqrt_2_over_pi) * (c(a, 1) + c(a, 3 * gelu_cubic) * a * a);
        return g * (s.value + a * s.slope * du);
      }));
}

// ---- copies ----

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype)
    return x;
  return record(
      "to", {x},
      [dtype]<class From>(std::span<const Tensor> in) {
        return dispatch(dtype, [&]<class To>() {
          auto y = empty_array<To>(in[0].shape());
          std::transform(in[0].data<From>(), in[0].data<From>() + y.size(), y.data(),
                         [](From v) { return static_cast<To>(v); });
          return Tensor(std::move(y));
        });
      },
      [before = x.dtype()](Context& ctx) { ctx.add(0, to(ctx.gradient(), before)); });
}

XGRAD_RULE(clone, "a", {"g"});
Tensor clone(const Tensor& x) {
  return record(
      "clone", {x},
      []<class T>(std::span<const Tensor> in) { return copy_of(in[0].data<T>(), in[0].shape()); },
      [](Context& ctx) { ctx.add(0, ctx.gradient()); });
}

}  // namespace xgrad
