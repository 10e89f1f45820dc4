// Special values in the functions of formulas, through the ops, in float32.  Their precision at the
// ends of ranges is in ends_of_ranges_test.cpp.

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

// Evenly spaced numbers, where functions bend.
std::vector<float> evenly(float low, float high) {
  std::vector<float> values;
  constexpr int n = 400'001;
  for (int i = 0; i < n; ++i)
    values.push_back(low + (high - low) * static_cast<float>(i) / (n - 1));
  return values;
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
  CHECK(at(log, tiny) < -87);  // -103.3, or -inf if it counts as zero
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
