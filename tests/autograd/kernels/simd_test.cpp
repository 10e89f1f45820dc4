// The accuracy of the functions that formulas use, through the ops: float32 beside the standard
// library in float64, over all magnitudes, and the special values.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <xgrad/autograd/custom_op.hpp>

#include "helpers/catch.hpp"
#include "helpers/element.hpp"

using namespace xgrad;

namespace {

constexpr float float_inf = std::numeric_limits<float>::infinity();
constexpr float float_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float tiny = std::numeric_limits<float>::denorm_min();
constexpr float least = std::numeric_limits<float>::min();  // the least normal number

using Op = Tensor (*)(const Tensor&);
using Function = double (*)(double);

Tensor from(const std::vector<float>& values) {
  auto a = empty_array<float>(Shape{values.size()});
  std::copy(values.begin(), values.end(), a.data());
  return Tensor(std::move(a));
}

// Numbers in [-limit, limit] of every magnitude: about 2,000 to a doubling, and their negatives.
std::vector<float> all_magnitudes(float limit) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x7f800000U; bits += 4093) {
    const float v = std::bit_cast<float>(bits);
    if (v > limit)
      break;
    values.push_back(v);
    values.push_back(-v);
  }
  return values;
}

// Evenly spaced numbers, where functions bend.
std::vector<float> evenly(float low, float high) {
  std::vector<float> values;
  constexpr int n = 400'001;
  for (int i = 0; i < n; ++i)
    values.push_back(low + (high - low) * static_cast<float>(i) / (n - 1));
  return values;
}

// The distance between neighbouring floats at y; that of the least normal number below it, where
// processors may take denormals for zero.
double spacing(double y) {
  const float f = std::max(static_cast<float>(std::abs(y)), least);
  return static_cast<double>(std::nextafter(f, float_inf)) - static_cast<double>(f);
}

struct Worst {
  double ulp = 0;
  float at = 0;
};

Worst worst(Op op, Function exact, const std::vector<float>& xs) {
  const Tensor y = op(from(xs));
  Worst result;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double expected = exact(static_cast<double>(xs[i]));
    const auto got = static_cast<double>(y.data<float>()[i]);
    if (std::isinf(static_cast<float>(expected)) && std::isinf(got))
      continue;
    const double ulp = std::abs(got - expected) / spacing(expected);
    if (!(ulp <= result.ulp))  // NaN, too
      result = {ulp, xs[i]};
  }
  return result;
}

// Prints the error if asked to: xgrad_tests "[simd]" -s
void check_accuracy(const char* name, Op op, Function exact, const std::vector<float>& xs,
                    double bound) {
  const Worst w = worst(op, exact, xs);
  INFO(name << " on [" << *std::ranges::min_element(xs) << ", " << *std::ranges::max_element(xs)
            << "]: " << w.ulp << " ulp at " << w.at);
  CHECK(w.ulp <= bound);
}

// The op's value at x: once in the middle of a register, once alone.
float at(Op op, float x) {
  std::vector<float> xs(37, 0.5f);
  xs[7] = x;
  const float inside = element<float>(op(from(xs)), 7), alone = element<float>(op(from({x})), 0);
  CHECK((inside == alone || (std::isnan(inside) && std::isnan(alone))));
  return inside;
}

}  // namespace

TEST_CASE("float32 functions are accurate to a few units in the last place", "[simd]") {
  constexpr float largest = std::numeric_limits<float>::max();
  const auto positive = [](std::vector<float> xs) {
    std::erase_if(xs, [](float x) { return x <= 0 || x < least; });
    return xs;
  };
  check_accuracy("exp", exp, std::exp, all_magnitudes(87), 2);
  check_accuracy("exp", exp, std::exp, evenly(-87, 88), 2);
  check_accuracy("log", log, std::log, positive(all_magnitudes(largest)), 2);
  check_accuracy("log", log, std::log, evenly(0.5f, 2), 2);
  check_accuracy("tanh", tanh, std::tanh, all_magnitudes(largest), 2);
  check_accuracy("tanh", tanh, std::tanh, evenly(-10, 10), 2);
  check_accuracy("erf", erf, std::erf, all_magnitudes(largest), 3);
  check_accuracy("erf", erf, std::erf, evenly(-4, 4), 3);
  check_accuracy("sin", sin, std::sin, all_magnitudes(1e4f), 2);
  check_accuracy("sin", sin, std::sin, evenly(-20, 20), 2);
  check_accuracy("cos", cos, std::cos, all_magnitudes(1e4f), 2);
  check_accuracy("cos", cos, std::cos, evenly(-20, 20), 2);
  check_accuracy("sqrt", sqrt, std::sqrt, positive(all_magnitudes(largest)), 0.5);
  check_accuracy(
      "sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, evenly(-80, 80), 4);
}

TEST_CASE("special values go through float32 functions as through the standard library", "[simd]") {
  struct Case {
    const char* name;
    Op op;
    Function exact;
  };
  for (const Case& c : {Case{"exp", exp, std::exp},
                        {"log", log, std::log},
                        {"tanh", tanh, std::tanh},
                        {"erf", erf, std::erf},
                        {"sin", sin, std::sin},
                        {"cos", cos, std::cos},
                        {"sqrt", sqrt, std::sqrt},
                        {"abs", abs, std::abs}})
    for (const float x :
         {0.0f, -0.0f, float_inf, -float_inf, float_nan, -1.0f, 104.0f, -104.0f, 1e10f, -1e30f}) {
      const auto expected = static_cast<float>(c.exact(static_cast<double>(x)));
      const float got = at(c.op, x);
      INFO(c.name << "(" << x << ") is " << got << ", expected " << expected);
      if (std::isnan(expected))
        CHECK(std::isnan(got));
      else if (std::isinf(expected) || expected == 0)
        CHECK((got == expected && std::signbit(got) == std::signbit(expected)));
      else
        CHECK(got == Approx(expected).epsilon(1e-6).margin(1e-44));
    }
}

TEST_CASE("denormals are themselves or zero, never garbage", "[simd]") {
  for (const float x : {tiny, -tiny, least / 4, -least / 4, least}) {
    INFO(x);
    for (const Op op : {Op(tanh), Op(sin)})
      CHECK(std::abs(at(op, x) - x) <= least);
    CHECK(std::abs(at(erf, x)) <= 2 * least);
    CHECK(at(exp, x) == 1);
    CHECK(at(cos, x) == 1);
    CHECK(at(sigmoid, x) == 0.5f);
    CHECK(std::abs(at(relu, x)) <= least);
  }
  CHECK(at(log, tiny) < -87);  // -103.3, or -inf where it is taken for zero
}

TEST_CASE("activations at infinity", "[simd]") {
  CHECK(at(sigmoid, float_inf) == 1);
  CHECK(at(sigmoid, -float_inf) == 0);
  CHECK(at(relu, float_inf) == float_inf);
  CHECK(at(relu, -float_inf) == 0);
  CHECK(std::isnan(at(relu, float_nan)));
  CHECK(at(rsqrt, float_inf) == 0);
  CHECK(at(rsqrt, 0) == float_inf);
  CHECK(at(silu, -104) == 0);
  const Op gelu_erf = [](const Tensor& x) { return gelu(x); };
  const Op gelu_tanh = [](const Tensor& x) { return gelu(x, Gelu::tanh); };
  for (const Op op : {gelu_erf, gelu_tanh}) {
    CHECK(at(op, 1e30f) == 1e30f);
    CHECK(at(op, -1e30f) == 0);
    CHECK(at(op, 0) == 0);
  }
}

// Beside sums with 1/2 a relative error near 0 makes no difference; |x| <= 1 is the unit there.
TEST_CASE("gelu and its derivative are right to 3e-7", "[simd]") {
  const auto cdf = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  const std::vector<float> xs = evenly(-8, 8);
  const Tensor x = from(xs).requires_grad_(), y = gelu(x);
  y.backward(ones_like(y));
  const Tensor grad = x.grad();
  double off = 0, derivative_off = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const auto at = static_cast<double>(xs[i]);
    const double pdf = std::exp(-at * at / 2) / std::sqrt(2 * std::acos(-1.0));
    const double unit = std::max(1.0, std::abs(at));
    off = std::max(off, std::abs(static_cast<double>(y.data<float>()[i]) - at * cdf(at)) / unit);
    derivative_off = std::max(derivative_off, std::abs(static_cast<double>(grad.data<float>()[i]) -
                                                       (cdf(at) + at * pdf)));
  }
  INFO(off << " and " << derivative_off);
  CHECK(off <= 3e-7);
  CHECK(derivative_off <= 3e-7);
  CHECK(std::isnan(at([](const Tensor& a) { return gelu(a); }, float_nan)));
}

TEST_CASE("every element sees the same instructions wherever it stands", "[simd]") {
  std::vector<float> xs = evenly(-6, 6);
  xs.resize(1000);
  for (const Op op : {Op(exp), Op(tanh), Op(erf), Op(sin), Op(sigmoid)}) {
    const Tensor all = op(from(xs));
    bool same = true;
    for (std::size_t length = 1; length <= 40; ++length) {
      const Tensor part = op(from({xs.end() - static_cast<std::ptrdiff_t>(length), xs.end()}));
      for (std::size_t i = 0; i < length; ++i)
        same = same && part.data<float>()[i] == all.data<float>()[xs.size() - length + i];
    }
    CHECK(same);
  }
}
