// Values and gradients at the ends of ranges: tails, subnormals, sums and products that overflow.
// The precision is PyTorch's: 1e-6 relative in float32, 1e-13 in float64.

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

using Wide = long double;

constexpr Wide pi = 3.14159265358979323846264338327950288L;
Wide wide_sigmoid(Wide x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
Wide wide_softplus(Wide x) { return std::max(x, Wide(0)) + std::log1p(std::exp(-std::abs(x))); }
Wide wide_cdf(Wide x) { return std::erfc(-x / std::sqrt(Wide(2))) / 2; }
Wide wide_slope(Wide x) {  // sigmoid'
  const Wide e = std::exp(-std::abs(x));
  return e / ((1 + e) * (1 + e));
}

/// |got - want| relative to |want|, in units of the promised precision.  Below the smallest normal
/// number the unit stays that number's; an overflow must be infinite.
double error_of(double got, Wide want, DType dtype, Wide scale = 0) {
  const bool narrow = dtype == DType::float32;
  const double most =
      narrow ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  const double least =
      narrow ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : inf;
  if (std::isinf(got) || std::abs(want) > most)
    return std::abs(want) > most * (1 - 1e-6) && (got > 0) == (want > 0) ? 0 : inf;
  const Wide relative = (narrow ? 1e-6L : 1e-13L) * std::max(std::abs(want), scale);
  return static_cast<double>(std::abs(static_cast<Wide>(got) - want) / (relative + 64 * least));
}

struct RangedFunction {
  const char* name;
  Tensor (*ours)(const Tensor&);
  Wide (*value)(Wide);
  Wide (*slope)(Wide);       ///< null: golden numbers cover it
  double least, most = inf;  ///< the arguments
  Wide (*curvature)(Wide) = nullptr;
};

const RangedFunction functions[] = {
    {"exp", exp, std::exp, std::exp, -inf},
    {"expm1", expm1, std::expm1, std::exp, -inf},
    {"log", log, std::log, [](Wide x) { return 1 / x; }, 0},
    {"log1p", log1p, std::log1p, [](Wide x) { return 1 / (1 + x); }, -0.999},
    {"log2", log2, std::log2, nullptr, 0},
    {"log10", log10, std::log10, nullptr, 0},
    {"sqrt", sqrt, std::sqrt, [](Wide x) { return 1 / (2 * std::sqrt(x)); }, 0},
    {"rsqrt", rsqrt, [](Wide x) { return 1 / std::sqrt(x); }, nullptr, 0},
    {"sin", sin, std::sin, std::cos, -1e4, 1e4},
    {"cos", cos, std::cos, [](Wide x) { return -std::sin(x); }, -1e4, 1e4},
    {"tan", tan, std::tan, nullptr, -1e4, 1e4},
    {"atan", atan, std::atan, nullptr, -inf},
    {"sinh", sinh, std::sinh, std::cosh, -inf},
    {"cosh", cosh, std::cosh, std::sinh, -inf},
    {"asinh", asinh, std::asinh, nullptr, -inf},
    {"tanh", tanh, std::tanh, [](Wide x) { return 4 * wide_slope(2 * x); }, -inf},
    {"erf", erf, std::erf, [](Wide x) { return 2 / std::sqrt(pi) * std::exp(-x * x); }, -inf},
    {"sigmoid", sigmoid, wide_sigmoid, wide_slope, -inf},
    {"logsigmoid", logsigmoid, [](Wide x) { return -wide_softplus(-x); },
     [](Wide x) { return wide_sigmoid(-x); }, -inf, inf, [](Wide x) { return -wide_slope(x); }},
    {"softplus", [](const Tensor& x) { return softplus(x, 1, inf); }, wide_softplus, wide_sigmoid,
     -inf, inf, wide_slope},
    {"logaddexp", [](const Tensor& x) { return logaddexp(x, zeros_like(x)); }, wide_softplus,
     wide_sigmoid, -inf, inf, wide_slope},
    {"silu", [](const Tensor& x) { return silu(x); }, [](Wide x) { return x * wide_sigmoid(x); },
     nullptr, -1e4},
    {"mish", mish, [](Wide x) { return x * std::tanh(wide_softplus(x)); }, nullptr, -1e4},
    {"elu", [](const Tensor& x) { return elu(x); },
     [](Wide x) { return x > 0 ? x : std::expm1(x); },
     [](Wide x) { return x > 0 ? 1 : std::exp(x); }, -inf},
    // Phi itself is right to 2e-7 in float32 from -3 on, so only the lower tail is relative.
    {"gelu", [](const Tensor& x) { return gelu(x); }, [](Wide x) { return x * wide_cdf(x); },
     [](Wide x) { return wide_cdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * pi); }, -7, -3.001},
};

/// Arguments of every size up to `most`, and their negatives.
std::vector<double> arguments(DType dtype) {
  std::vector<double> all;
  for (const double x :
       {1e-300, 1e-39, 1e-30, 1e-12, 1e-5,  0.01,  0.3,   0.5,  0.99, 1.0,  1.5,  2.5,
        3.7,    5.5,   6.9,   9.0,   12.0,  17.3,  21.0,  40.0, 79.5, 86.0, 87.3, 88.6,
        89.5,   103.0, 300.0, 707.0, 709.5, 711.0, 745.0, 5e3,  1e10, 1e30, 3e38, 1e300})
    if (dtype == DType::float64 || (x < 3.4e38 && x > 1e-38))
      all.insert(all.end(), {x, -x});
  return all;
}

Tensor row(const std::vector<double>& values, DType dtype) {
  return to(Tensor(std::vector<double>(values)), dtype).detach().requires_grad_();
}

}  // namespace

TEST_CASE("functions and their gradients keep their precision at the ends of ranges",
          "[accuracy]") {
  for (const DType dtype : {DType::float32, DType::float64})
    for (const RangedFunction& f : functions) {
      std::vector<double> xs = arguments(dtype);
      std::erase_if(xs, [&](double x) { return x < f.least || x > f.most; });
      const Tensor x = row(xs, dtype);
      const Tensor y = f.ours(x);
      const Tensor one = ones_like(y);
      const Tensor graph = grad({y}, {x}, {.grad_outputs = {one}, .create_graph = true})[0],
                   dx = grad({y}, {x}, {.grad_outputs = {one}})[0],
                   ddx = f.curvature ? grad({sum(graph)}, {x})[0] : dx;
      REQUIRE(xs.size() >= 3);
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const Wide at = numbers(x)[i];
        INFO(f.name << " at " << numbers(x)[i] << " in " << to_string(dtype) << " is "
                    << numbers(y)[i] << ", its gradient " << numbers(dx)[i]);
        CHECK(error_of(numbers(y)[i], f.value(at), dtype) <= (f.most == -3.001 ? 8 : 1));
        if (f.slope != nullptr)
          for (const Tensor& d : {dx, graph})
            CHECK(error_of(numbers(d)[i], f.slope(at), dtype) <= (f.most == -3.001 ? 8 : 2));
        // PyTorch 2.15: 0 for logsigmoid at 40, NaN for logaddexp at -800.
        if (f.curvature != nullptr)
          CHECK(error_of(numbers(ddx)[i], f.curvature(at), dtype) <= 2);
      }
    }
}

TEST_CASE("gelu has the right size and sign, and tanh's form the right sign", "[accuracy]") {
  const Tensor x = linspace(-12.9, 8, 400), y = gelu(x), smooth = gelu(x, Gelu::tanh);
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    const double at = x[i].item(), want = static_cast<double>(at * wide_cdf(at));
    INFO("gelu(" << at << ") is " << y[i].item());
    CHECK(std::abs(y[i].item() - want) <= 3e-7 * std::max(1.0, std::abs(at)));
    CHECK((y[i].item() <= 0) == (at <= 0));
    CHECK((smooth[i].item() <= 0) == (at <= 0));
  }
  CHECK(gelu(scalar(-5.5)).item() == Approx(-1.0444e-7).epsilon(1e-4));
}

TEST_CASE("norms keep their precision about an offset and at every magnitude", "[accuracy]") {
  struct Row {
    double offset, size, eps;
  };
  for (const DType dtype : {DType::float32, DType::float64})
    for (const bool centred : {true, false})
      for (const Row& row :
           {Row{0, 1, 1e-5}, Row{100.3, 1, 1e-5}, Row{-10000.3, 1, 1e-5}, Row{1e6, 1e4, 1e-5},
            Row{0, 1e18, 1e-5}, Row{0, 1e30, 1e-5}, Row{0, 1e-30, 0}, Row{0, 1e30, 0}})
        for (const int mode : {0, 1, 2}) {  // the kernel, under create_graph, decomposed
          const std::int64_t n = 100;
          const Tensor x = (normal({n}, 1, dtype) * row.size + row.offset).detach();
          const Tensor g = normal({n}, 2, dtype);
          std::optional<Decompose> decompose;
          if (mode == 2)
            decompose.emplace();
          const Tensor leaf = x.detach().requires_grad_();
          const Tensor y =
              centred ? layer_norm(leaf, {n}, {}, {}, row.eps) : rms_norm(leaf, {n}, {}, row.eps);
          const Tensor dx = grad({y}, {leaf}, {.grad_outputs = {g}, .create_graph = mode == 1})[0];
          std::vector<Wide> v, d;
          for (const double e : numbers(x))
            v.push_back(e);
          for (const double e : numbers(g))
            d.push_back(e);
          const auto product = [&](const std::vector<Wide>& a, const std::vector<Wide>& b) {
            Wide sum = 0;
            for (std::size_t i = 0; i < a.size(); ++i)
              sum += a[i] * b[i];
            return sum / static_cast<Wide>(n);
          };
          if (centred)
            for (std::vector<Wide>* values : {&v, &v, &d}) {  // v's first mean is itself rounded
              const Wide mean = product(*values, std::vector<Wide>(values->size(), 1));
              for (Wide& e : *values)
                e -= mean;
            }
          const Wide r = 1 / std::sqrt(product(v, v) + static_cast<Wide>(row.eps));
          for (Wide& e : v)
            e *= r;
          const Wide along = product(v, d);
          INFO((centred ? "layer_norm" : "rms_norm")
               << ", " << to_string(dtype) << ", mode " << mode << ", about " << row.offset
               << ", size " << row.size);
          double worst = 0, worst_gradient = 0;
          for (std::size_t i = 0; i < v.size(); ++i) {
            worst = std::max(worst, error_of(numbers(y)[i], v[i], dtype, 3));
            worst_gradient = std::max(
                worst_gradient, error_of(numbers(dx)[i], r * (d[i] - v[i] * along), dtype, 6 * r));
          }
          CHECK(worst <= 1);
          CHECK(worst_gradient <= 1);
        }
}

TEST_CASE("layer_norm of equal numbers is 0, and so is its gradient of equal gradients",
          "[accuracy]") {
  for (const auto& [n, v] : {std::pair{3, 100.3}, {384, 10000.3}, {7, -0.1}, {800, 1e6}})
    for (const bool create_graph : {false, true}) {
      const Tensor x = full({n}, v).requires_grad_(), y = layer_norm(x, {n});
      CHECK(all(y == 0.0));
      CHECK(all(grad({y}, {x}, {.grad_outputs = {full({n}, v)}, .create_graph = create_graph})[0] ==
                0.0));
      // An offset of the gradient adds nothing, though its mean is rounded.
      const Tensor z = normal({n}, 1, DType::float32).requires_grad_();
      const Tensor g = round(8.0 * normal({n}, 2, DType::float32));
      const auto dz = [&, n = n](const Tensor& of_y) {
        return grad({layer_norm(z, {n})}, {z},
                    {.grad_outputs = {of_y}, .create_graph = create_graph})[0];
      };
      CHECK(all(abs(dz(g + 65536) - dz(g)) < 1e-4));
    }
}

// y = u / sqrt(q), where x's first element moves u by 1 - 1 / n and makes of q a parabola.
TEST_CASE("the third derivative of layer_norm is that of its formula", "[accuracy]") {
  for (const bool decomposed : {false, true}) {
    std::optional<Decompose> decompose;
    if (decomposed)
      decompose.emplace();
    const Tensor x = tensor({1, 2, 4}, DType::float64).requires_grad_();
    Tensor y = layer_norm(x, {3})[0];
    for (int order = 1; order <= 3; ++order)
      y = grad({y}, {x}, {.create_graph = true})[0][0];
    const Wide u = -4 / Wide(3), du = 2 / Wide(3), q = 14 / Wide(9) + 1e-5L, dq = 2 * u / 3,
               ddq = 4 / Wide(9);
    const Wide second = 0.75L * dq * dq * std::pow(q, -2.5L) - 0.5L * ddq * std::pow(q, -1.5L),
               third = 2.25L * dq * ddq * std::pow(q, -2.5L) -
                       1.875L * dq * dq * dq * std::pow(q, -3.5L);
    INFO(y.item());  // PyTorch 2.15: 0.2454
    CHECK(error_of(y.item(), 3 * du * second + u * third, DType::float64) <= 1);
  }
}

// Rows that differ by an offset or, if eps is scaled, by a factor may differ by rounding alone.
TEST_CASE("second derivatives of norms depend on neither offset nor magnitude", "[accuracy]") {
  struct Change {
    bool centred;
    double eps, offset, factor;
  };
  for (const DType dtype : {DType::float32, DType::float64})
    for (const bool decomposed : {false, true})
      for (const std::int64_t n : {2, 16, 100}) {
        const bool narrow = dtype == DType::float32;
        const double far = narrow ? 0x1p36 : 0x1p300;     // the results are numbers
        const double tiny = narrow ? 0x1p-44 : 0x1p-345;  // third powers are 0
        for (const Change& c : {Change{true, 1e-5, 1024, 1},
                                {true, 1e-5, 1e6, 1},
                                {true, 16, 0, tiny},
                                {false, 16, 0, tiny},
                                {true, 0, 0, far},
                                {true, 0, 0, 1 / far},
                                {false, 0, 0, far},
                                {false, 0, 0, 1 / far}}) {
          const auto second = [&](double offset, double factor) {
            std::optional<Decompose> decompose;
            if (decomposed)
              decompose.emplace();
            const Tensor x =
                ((floor(8.0 * normal({4, n}, 1, dtype)) + offset) * factor).requires_grad_();
            const double eps = c.eps * factor * factor;
            const Tensor y =
                c.centred ? layer_norm(x, {n}, {}, {}, eps) : rms_norm(x, {n}, {}, eps);
            const Tensor g = grad(
                {y}, {x}, {.grad_outputs = {normal({4, n}, 2, dtype)}, .create_graph = true})[0];
            const Tensor gg = grad({g}, {x}, {.grad_outputs = {normal({4, n}, 3, dtype)}})[0];
            return gg * factor * factor;
          };
          const Tensor plain = second(0, 1), changed = second(c.offset, c.factor);
          INFO((c.centred ? "layer_norm, " : "rms_norm, ")
               << to_string(dtype) << (decomposed ? ", decomposed, " : ", composed, ") << n
               << ", eps " << c.eps << ", offset " << c.offset << ", factor " << c.factor);
          const double off = numbers(vector_norm(changed - plain, inf))[0];
          CHECK(off <= 16 * (narrow ? 0x1p-23 : 0x1p-52) * numbers(vector_norm(plain, inf))[0]);
        }
      }
}

TEST_CASE("a row that leaves the range changes no bit of its neighbours", "[accuracy]") {
  const Tensor plain = normal({1, 100}, 1, DType::float32), huge = plain * 1e25;
  const auto norms = {+[](const Tensor& x) { return layer_norm(x, {100}); },
                      +[](const Tensor& x) { return rms_norm(x, {100}); }};
  for (const auto norm : norms) {
    const Tensor y = norm(cat({plain, huge, plain})), alone = norm(plain);
    CHECK(same_bits(y[0], alone[0]));
    CHECK(same_bits(y[2], alone[0]));
    CHECK(same_bits(y[1], norm(huge)[0]));
  }
}

TEST_CASE("var and std near the ends of the range have the right value and gradients",
          "[accuracy]") {
  for (const Values& v : {Values{1e20, -1e20}, {1e-25, -1e-25}, {1e38, 2e38, 3e38}, {3e38, 3e38}}) {
    const Tensor x = tensor(v).requires_grad_();
    const Tensor plain = to(x.detach(), DType::float64).requires_grad_();
    const Tensor y = xgrad::std(x), wide = xgrad::std(plain);
    CHECK(same_bits(y, to(wide, DType::float32)));
    const auto gradient = [](const Tensor& of, const Tensor& at) {
      return grad({of}, {at}, {.create_graph = true})[0];
    };
    const Tensor dx = gradient(y, x), wanted = gradient(wide, plain);
    CHECK(allclose(to(dx.detach(), DType::float64), wanted.detach(), 1e-6, 0));
    const Tensor ddx = grad({dx[0]}, {x})[0], second = grad({wanted[0]}, {plain})[0];
    const double spread = numbers(wide)[0];  // second derivatives are of the size of 1 / spread
    CHECK(allclose(to(ddx, DType::float64), second, 0, spread == 0 ? 0 : 1e-6 / spread));
  }
  CHECK(xgrad::std(tensor({1e300, -1e300}, DType::float64)).item() ==
        Approx(std::sqrt(2) * 1e300).epsilon(1e-15));
  for (const double offset : {0.0, 100.0, 1e6})  // the mean cancels at any size
    CHECK(var(tensor({offset + 1, offset + 2, offset + 3})).item() == 1);
}

TEST_CASE("vector_norm and prod: powers and products that leave the range", "[accuracy]") {
  for (const DType dtype : {DType::float32, DType::float64})
    for (const double ord : {0.5, 1.5, 2.0, 3.0, 20.0})
      for (const double size : {1e30, 1.0, 3e-7, 1e-30}) {
        CAPTURE(to_string(dtype), ord, size);
        const Tensor x = tensor({size, size, size}, dtype).requires_grad_();
        const Tensor y = vector_norm(x, ord);
        CHECK(error_of(y.item(), x[0].item() * std::pow(Wide(3), 1 / ord), dtype) <= 1);
        CHECK(error_of(grad({y}, {x})[0][0].item(), std::pow(Wide(3), 1 / ord - 1), dtype) <= 1);
        const Tensor z = tensor({0, size, size}, dtype).requires_grad_();
        if (ord > 1)  // an element 0 has gradient 0, whatever the powers of the others
          CHECK(grad({vector_norm(z, ord)}, {z})[0][0].item() == 0);
      }
  struct Case {
    std::vector<double> x, first;
    std::vector<double> second;  ///< the gradient of the sum of the first
  };
  const double nan = not_a_number;
  for (const Case& c :
       {Case{{1e-30, 1e-30, 2}, {2e-30, 2e-30, 0}, {2, 2, 2e-30}},
        Case{{inf, 2, 3}, {6, inf, inf}, {5, inf, inf}},
        Case{{0, inf, 3}, {inf, 0, nan}, {inf, 3, inf}},
        Case{{1e30, 1e30, 1e-30, 1e-30}, {1e-30, 1e-30, 1e30, 1e30}, {2, 2, inf, inf}},
        Case{{0, 1e-30, 1e-30, 1e30}, {1e-30, 0, 0, 0}, {2, 1, 1, 0}},
        Case{{0, 0, 2}, {0, 0, 0}, {2, 2, 0}},
        Case{{1e20, 1e20, 1e20}, {inf, inf, inf}, {2e20, 2e20, 2e20}}}) {
    const Tensor x = row(c.x, DType::float32);
    const Tensor first = grad({prod(x)}, {x}, {.create_graph = true})[0];
    const Tensor plain = grad({prod(x)}, {x})[0], second = grad({sum(first)}, {x})[0];
    INFO(to_string(x) << ": " << to_string(first) << ", second " << to_string(second));
    for (std::size_t i = 0; i < c.x.size(); ++i) {
      CHECK(error_of(numbers(first)[i], c.first[i], DType::float32) <= 1);
      CHECK(error_of(numbers(plain)[i], c.first[i], DType::float32) <= 1);
      CHECK(error_of(numbers(second)[i], c.second[i], DType::float32) <= 1);
    }
  }
}

TEST_CASE("mean: a sum that leaves the range, and means of equal losses", "[accuracy]") {
  for (const std::int64_t n : {2, 3, 800}) {
    const Tensor rows = stack({full({n}, 3e38), full({n}, 1e-3), full({n}, inf), full({n}, -3e38)});
    const std::vector<double> m = numbers(mean(rows, {1}));
    CHECK(m[0] == Approx(3e38).epsilon(1e-6));
    CHECK(m[1] == numbers(mean(rows[1]))[0]);
    CHECK(m[2] == inf);
    CHECK(m[3] == Approx(-3e38).epsilon(1e-6));
  }
  const Tensor logits = stack({full({384}, 100.3), full({384}, 97.1), full({384}, 99.7)}, 1);
  const auto loss = [&](Reduction r) {
    return cross_entropy(logits, argmin(logits, 1), {.reduction = r});
  };
  CHECK(numbers(loss(Reduction::mean))[0] == numbers(loss(Reduction::none))[0]);
}
