// The functions of one variable over their whole range: values beside the standard library's in
// float64 and long double, in units of the last place (ulp), and derivatives beside closed forms.
// The bounds are those of ops.hpp.  Beside PyTorch's: xgrad_tests "[.accuracy-summary]"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using Wide = long double;
using Unary = std::function<Tensor(const Tensor&)>;

// |got - want| at x in units of the last place of want, and no smaller ones than subnormals have.
template <class T>
double ulp(T x, T got, Wide want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(got) || std::isnan(rounded) || std::isinf(got) || std::isinf(rounded))
    return got == rounded || (std::isnan(got) && std::isnan(rounded)) ? 0 : inf;
  if (rounded == 0 && got == 0)
    return x != 0 || std::signbit(got) == std::signbit(rounded) ? 0 : inf;
  const int exponent = std::max(std::ilogb(rounded), std::numeric_limits<T>::min_exponent - 1);
  const Wide unit = std::ldexp(Wide(1), exponent + 1 - std::numeric_limits<T>::digits);
  return static_cast<double>(std::abs(static_cast<Wide>(got) - want) / unit);
}

struct Largest {
  double ulp = 0;
  double at = 0;
};

// What a sweep visits: of float32 every `stride`-th number there is, of float64 as many in all,
// of every magnitude and between -800 and 800 evenly; infinities, NaN, zeros and subnormals.
template <class T>
std::vector<T> sweep(std::uint32_t stride) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> xs = {0, -T(0), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()};
  for (const T x : {Limits::denorm_min(), Limits::min(), Limits::max(), std::nextafter(T(1), T(2))})
    xs.insert(xs.end(), {x, -x});
  std::uint64_t random = 1;
  for (std::uint64_t k = stride / 2; k < std::uint64_t{1} << 32; k += stride) {
    if constexpr (sizeof(T) == 4) {
      xs.push_back(std::bit_cast<T>(static_cast<std::uint32_t>(k)));
    } else {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const std::uint64_t bits = random ^ random >> 29;
      const double place = static_cast<double>(bits >> 11) * 0x1p-53;
      const std::uint64_t kind = k / stride % 4;
      xs.push_back(kind == 0   ? std::bit_cast<T>(bits)
                   : kind == 1 ? 1600 * place - 800
                   : kind == 2 ? 20 * place - 10
                               : std::ldexp(2 * place - 1, static_cast<int>(bits % 64) - 56));
    }
  }
  return xs;
}

// ---- what they should be

constexpr Wide pi = 3.14159265358979323846264338327950288L;
Wide wide_sigmoid(Wide x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
Wide wide_slope(Wide x) {  // sigmoid'
  const Wide e = std::exp(-std::abs(x));
  return e / ((1 + e) * (1 + e));
}
Wide wide_softplus(Wide x) { return std::max(x, Wide(0)) + std::log1p(std::exp(-std::abs(x))); }
Wide wide_phi(Wide x) { return std::exp(-x * x / 2) / std::sqrt(2 * pi); }
Wide wide_cdf(Wide x) { return std::erfc(-x / std::sqrt(Wide(2))) / 2; }

struct Measured {
  const char* name;
  Unary ours;
  Wide (*exact)(Wide);
  double bound32, bound64;            ///< in ulp, as in ops.hpp
  double pytorch32, pytorch64;        ///< PyTorch 2.15: scripts/pytorch/function_accuracy.py
  double low32 = -inf, low64 = -inf;  ///< below, a factor of the result is subnormal
};

template <class T>
Largest largest_error(const Measured& function, std::uint32_t stride) {
  static std::map<std::uint32_t, std::vector<T>> sweeps;
  std::vector<T>& xs = sweeps[stride];
  if (xs.empty())
    xs = sweep<T>(stride);
  Largest worst;
  const double low = sizeof(T) == 4 ? function.low32 : function.low64;
  constexpr std::size_t part = 1 << 16;
  for (std::size_t begin = 0; begin < xs.size(); begin += part) {
    const std::size_t end = std::min(begin + part, xs.size());
    const Tensor y =
        function.ours(Tensor(std::vector<T>(xs.begin() + static_cast<std::ptrdiff_t>(begin),
                                            xs.begin() + static_cast<std::ptrdiff_t>(end))));
    for (std::size_t i = begin; i < end; ++i) {
      if (std::isfinite(xs[i]) && static_cast<double>(xs[i]) < low)
        continue;
      const double u = ulp(xs[i], y.data<T>()[i - begin], function.exact(static_cast<Wide>(xs[i])));
      if (!(u <= worst.ulp))
        worst = {u, static_cast<double>(xs[i])};
    }
  }
  return worst;
}

const std::vector<Measured>& functions() {
  static const std::vector<Measured> all = {
      {"exp", [](const Tensor& x) { return exp(x); }, std::exp, 1.1, 1.1, 0.56, 0.52},
      {"expm1", [](const Tensor& x) { return expm1(x); }, std::expm1, 2.5, 2.5, 1, 1},
      {"log", [](const Tensor& x) { return log(x); }, std::log, 1, 1, 0.85, 0.68},
      {"log2", [](const Tensor& x) { return log2(x); }, std::log2, 1.5, 1.5, 0.62, 0.5},
      {"log10", [](const Tensor& x) { return log10(x); }, std::log10, 2.5, 2.5, 0.62, 0.5},
      {"log1p", [](const Tensor& x) { return log1p(x); }, std::log1p, 1, 1, 1, 1},
      {"neg", [](const Tensor& x) { return neg(x); }, [](Wide x) { return -x; }, 0, 0, 0, 0},
      {"abs", [](const Tensor& x) { return abs(x); }, std::abs, 0, 0, 0, 0},
      {"sqrt", [](const Tensor& x) { return sqrt(x); }, std::sqrt, 0.5, 0.501, 0.75, 0.53},
      {"rsqrt", [](const Tensor& x) { return rsqrt(x); }, [](Wide x) { return 1 / std::sqrt(x); },
       1.5, 1.5, 1.48, 1.47},
      {"sin", [](const Tensor& x) { return sin(x); }, std::sin, 2.5, 2.5, 0.6, 0.5},
      {"cos", [](const Tensor& x) { return cos(x); }, std::cos, 2.5, 2.5, 0.6, 0.5},
      {"tan", [](const Tensor& x) { return tan(x); }, std::tan, 1.5, 1.5, 0.94, 0.52},
      {"atan", [](const Tensor& x) { return atan(x); }, std::atan, 1.5, 1.5, 0.81, 0.66},
      {"sinh", [](const Tensor& x) { return sinh(x); }, std::sinh, 2.5, 2.5, 1.87, inf},
      {"cosh", [](const Tensor& x) { return cosh(x); }, std::cosh, 2.5, 2.5, 1.87, inf},
      {"asinh", [](const Tensor& x) { return asinh(x); }, std::asinh, 2.5, 2.5, 1.57, 1.68},
      {"reciprocal", [](const Tensor& x) { return reciprocal(x); }, [](Wide x) { return 1 / x; },
       0.501, 0.501, 0.5, 0.5},
      {"tanh", [](const Tensor& x) { return tanh(x); }, std::tanh, 2, 2, 0.51, 0.74},
      {"erf", [](const Tensor& x) { return erf(x); }, std::erf, 3, 2, 0.73, 1},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); }, wide_sigmoid, 3, 3, 2096687,
       1100000000000000.0},
      {"logsigmoid", [](const Tensor& x) { return logsigmoid(x); },
       [](Wide x) { return std::min(x, Wide(0)) - std::log1p(std::exp(-std::abs(x))); }, 3, 3, 1.5,
       1.53},
      {"softplus", [](const Tensor& x) { return softplus(x); },
       [](Wide x) { return x > 20 ? x : wide_softplus(x); }, 3, 3, 1.5, 1.55},
      {"silu", [](const Tensor& x) { return silu(x); }, [](Wide x) { return x * wide_sigmoid(x); },
       4, 4, 2.37, 1.98, -87, -708},
      {"mish", [](const Tensor& x) { return mish(x); },
       [](Wide x) { return x * std::tanh(wide_softplus(x)); }, 6, 6, 2.86, 2.82, -87, -708},
      {"elu", [](const Tensor& x) { return elu(x); },
       [](Wide x) { return x > 0 ? x : std::expm1(x); }, 2, 2, 1, 1},
  };
  return all;
}

void print(double u) {
  if (std::isinf(u) || u >= 1e5)
    std::cout << std::setw(12) << (std::isinf(u) ? "wrong" : ">= 1e5");
  else
    std::cout << std::setw(12) << std::fixed << std::setprecision(2) << u;
}

}  // namespace

TEST_CASE("functions are as accurate as ops.hpp says over their whole range", "[accuracy]") {
  for (const Measured& f : functions()) {
    const Largest e32 = largest_error<float>(f, 50'021);
    INFO(f.name << " in float32: " << e32.ulp << " ulp at " << e32.at);
    CHECK(e32.ulp <= f.bound32);
    const Largest e64 = largest_error<double>(f, 50'021);
    INFO(f.name << " in float64: " << e64.ulp << " ulp at " << e64.at);
    CHECK(e64.ulp <= f.bound64);
  }
}

TEST_CASE("functions over their whole range: largest errors in ulp, ours and PyTorch 2.15's",
          "[.accuracy-summary]") {
  std::cout << "function     float32: ours     PyTorch  float64: ours     PyTorch\n";
  for (const Measured& f : functions()) {
    std::cout << std::left << std::setw(12) << f.name << std::right << "     ";
    const double ours32 = largest_error<float>(f, 257).ulp;
    const double ours64 = largest_error<double>(f, 1031).ulp;
    print(ours32);
    print(f.pytorch32);
    std::cout << "   ";
    print(ours64);
    print(f.pytorch64);
    std::cout << '\n';
    CHECK(ours32 <= f.bound32);
    CHECK(ours64 <= f.bound64);
  }
}

// x Phi(x): below -3 an error of exp(-x^2 / 2), which is that of x^2; above, as ops.hpp says.
TEST_CASE("gelu has the right sign and size in its lower tail", "[accuracy]") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double eps = dtype == DType::float32 ? 0x1p-23 : 0x1p-52;
    const double end = dtype == DType::float32 ? -12.9 : -37.5;
    const Tensor x = linspace(end, 8, 4001, DType::float64).to(dtype), y = gelu(x);
    const Tensor smooth = gelu(x, Gelu::tanh);
    const std::vector<double> xs = numbers(x), ys = numbers(y), smooths = numbers(smooth);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const double at = xs[i];
      const Wide want = at * wide_cdf(at);
      const double off = std::abs(ys[i] - static_cast<double>(want));
      INFO("gelu(" << at << ") is " << ys[i] << " in " << to_string(dtype));
      if (dtype == DType::float32 && at >= -3)
        CHECK(off <= 3e-7 * std::max(1.0, std::abs(at)));
      else
        CHECK(off <= (8 + at * at / 2) * eps * std::abs(static_cast<double>(want)));
      CHECK((ys[i] <= 0) == (at <= 0));
      CHECK((smooths[i] <= 0) == (at <= 0));
    }
  }
  CHECK(gelu(scalar(-5.5)).item() == Approx(-1.0444e-7).epsilon(1e-4));
}

namespace {

// The first three derivatives, and the size of the terms of which each is a sum.
struct Derivatives {
  std::array<Wide, 3> value, size;
};
using Jet = std::array<Wide, 4>;  // a function and its derivatives

Jet sigmoid_jet(Wide x) {
  const Wide s = wide_slope(x);
  return {wide_sigmoid(x), s, -s * std::tanh(x / 2), s * (1 - 6 * s)};
}
Jet tanh_jet(Wide x) {
  const Jet s = sigmoid_jet(2 * x);
  return {std::tanh(x), 4 * s[1], 8 * s[2], 16 * s[3]};
}
// f(u), of f at u and of u
Jet chain(const Jet& f, const Jet& u) {
  return {f[0], f[1] * u[1], f[2] * u[1] * u[1] + f[1] * u[2],
          f[3] * u[1] * u[1] * u[1] + 3 * f[2] * u[1] * u[2] + f[1] * u[3]};
}
Derivatives derivatives_of(const Jet& f, bool third_has_zero = false) {
  Derivatives d;
  for (std::size_t k = 0; k < 3; ++k)
    d.value[k] = f[k + 1], d.size[k] = std::abs(f[k + 1]);
  if (third_has_zero)
    d.size[2] += std::abs(f[1]);
  return d;
}
// of x f(x)
Derivatives times_x(Wide x, const Jet& f) {
  Derivatives d;
  for (std::size_t k = 0; k < 3; ++k) {
    const Wide a = static_cast<Wide>(k + 1) * f[k], b = x * f[k + 1];
    d.value[k] = a + b;
    d.size[k] = std::abs(a) + std::abs(b);
  }
  return d;
}
Jet softplus_jet(Wide x) {
  const Jet s = sigmoid_jet(x);
  return {wide_softplus(x), s[0], s[1], s[2]};
}

struct Differentiable {
  const char* name;
  Unary ours;
  Derivatives (*exact)(Wide);
  double low, high;  ///< where
  double bound;      ///< in epsilons of the terms' size
  double square;     ///< to which so many are added for each x^2: exp(-x^2 / 2) has them
};

const std::vector<Differentiable> differentiables = {
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); },
     [](Wide x) { return derivatives_of(sigmoid_jet(x), true); }, -80, 80, 16, 0},
    {"tanh", [](const Tensor& x) { return tanh(x); },
     [](Wide x) { return derivatives_of(tanh_jet(x), true); }, -40, 40, 16, 0},
    {"softplus", [](const Tensor& x) { return softplus(x, 1, inf); },
     [](Wide x) { return derivatives_of(softplus_jet(x)); }, -80, 80, 16, 0},
    {"logsigmoid", [](const Tensor& x) { return logsigmoid(x); },
     [](Wide x) {
       const Jet s = sigmoid_jet(x);
       return derivatives_of({0, wide_sigmoid(-x), -s[1], -s[2]});
     },
     -80, 80, 16, 0},
    {"silu", [](const Tensor& x) { return silu(x); },
     [](Wide x) { return times_x(x, sigmoid_jet(x)); }, -80, 80, 16, 0},
    {"mish", [](const Tensor& x) { return mish(x); },
     [](Wide x) { return times_x(x, chain(tanh_jet(wide_softplus(x)), softplus_jet(x))); }, -80, 40,
     32, 0},
    {"gelu, tanh", [](const Tensor& x) { return gelu(x, Gelu::tanh); },
     [](Wide x) {
       const Wide a = 2 * std::sqrt(2 / pi), b = 0.044715L;
       const Wide u = a * (x + b * x * x * x);
       return times_x(
           x, chain(sigmoid_jet(u), {u, a * (1 + 3 * b * x * x), a * 6 * b * x, a * 6 * b}));
     },
     -8, 8, 32, 2},
    {"gelu", [](const Tensor& x) { return gelu(x); },
     [](Wide x) {
       const Wide p = wide_phi(x);
       return times_x(x, {wide_cdf(x), p, -x * p, (x * x - 1) * p});
     },
     -12.5, 8, 16, 1},
};

}  // namespace

TEST_CASE("derivatives of saturating functions keep their relative accuracy in the tails",
          "[accuracy]") {
  for (const DType dtype : {DType::float32, DType::float64})
    for (const Differentiable& f : differentiables) {
      const double eps = dtype == DType::float32 ? 0x1p-23 : 0x1p-52;
      const Tensor x = linspace(f.low, f.high, 3001, DType::float64).to(dtype).requires_grad_();
      Tensor y = f.ours(x);
      const Tensor one = ones_like(x),
                   ordinary = grad({f.ours(x)}, {x}, {.grad_outputs = {one}})[0];
      const std::vector<double> xs = numbers(x), first = numbers(ordinary);
      std::array<Tensor, 3> all;
      for (Tensor& d : all)
        d = y = grad({y}, {x}, {.grad_outputs = {one}, .create_graph = true})[0];
      for (std::size_t k = 0; k < 3; ++k) {
        Largest worst;
        const std::vector<double> values = numbers(all[k]);
        for (std::size_t i = 0; i < xs.size(); ++i) {
          const double at = xs[i];
          const Derivatives want = f.exact(at);
          const auto off = [&](const std::vector<double>& d) {
            const double got = d[i];
            double error = static_cast<double>(std::abs(got - want.value[k]) / want.size[k]) / eps;
            // where Phi of float32 is right to 2e-7 only
            if (k == 0 && std::string(f.name) == "gelu" && dtype == DType::float32 && at >= -3)
              error = static_cast<double>(std::abs(got - want.value[k])) / 3e-7 * f.bound;
            return error / (f.bound + f.square * at * at);
          };
          for (const std::vector<double>& d : {values, k == 0 ? first : values})
            if (!(off(d) <= worst.ulp))
              worst = {off(d), at};
        }
        INFO(f.name << " in " << to_string(dtype) << ", derivative " << k + 1 << ": "
                    << worst.ulp * f.bound << " epsilons at " << worst.at);
        CHECK(worst.ulp <= 1);
      }
    }
}
