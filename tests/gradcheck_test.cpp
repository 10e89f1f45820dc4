#include <cstring>
#include <limits>
#include <xgrad/autograd/custom_op.hpp>
#include <xgrad/autograd/random.hpp>

#include "catch.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace {

Tensor leaf(const Values& values) { return tensor(values, DType::float64).requires_grad_(); }

// 2 x, whose derivative is claimed to be `claim`, at element `at` of x only.
Tensor wrong_at(const Tensor& x, std::size_t at, double claim) {
  return record(
      "wrong", {x}, [](std::span<const Tensor> in) { return in[0] * 2.0; },
      [at, claim](Sink& sink) {
        Tensor g = clone(sink.gradient() * 2.0);
        g.update([&](auto& a) {
          using T = typename std::remove_reference_t<decltype(a)>::value_type;
          a.data()[at] = static_cast<T>(claim);
        });
        sink.add(0, g);
      });
}

// x^2 with a right first derivative whose own derivative is wrong: it treats x as a constant.
Tensor square_once(const Tensor& x) {
  return record(
      "square_once", {x}, [](std::span<const Tensor> in) { return in[0] * in[0]; },
      [value = x.detach()](Sink& sink) { sink.add(0, sink.gradient() * value * 2.0); });
}

}  // namespace

TEST_CASE("gradcheck agrees with right gradients", "[gradcheck]") {
  const Tensor x = leaf({{0.5, -1}, {2, 0.25}}), w = leaf({3, -2});
  const auto f = [](const Inputs& in) { return exp(in[0]) * in[1] + in[0] * in[0]; };
  const auto report = gradcheck(f, {x, w});
  CHECK(report);
  CHECK(report.checked == 6);
  CHECK(report.worst_error < 1e-8);
  CHECK_THAT(report.message, ContainsSubstring("gradcheck: all 6 elements agree"));
  const auto second = gradgradcheck(f, {x, w});
  CHECK(second);
  CHECK(second.checked == 6 + 4);  // and the cotangent
}

TEST_CASE("gradcheck names the element of a wrong gradient", "[gradcheck]") {
  const Tensor a = leaf({1, 2}), x = leaf({{1, 2, 3}, {4, 5, 6}});
  const auto f = [](const Inputs& in) { return sum(in[0]) * wrong_at(in[1], 4, 0.125); };
  const auto report = gradcheck(f, {a, x});
  CHECK_FALSE(report);
  CHECK(report.input == 1);
  CHECK(report.index == std::vector<std::size_t>{1, 1});
  CHECK(report.analytic == 0.125);
  CHECK(std::abs(report.numeric) >= 3.0);  // 3 * 2 * the cotangent, which is at least 0.5
  CHECK(report.worst_error > 0.5);
  CHECK_THAT(report.message,
             ContainsSubstring("gradcheck: input 1 at (1, 1): analytic 0.125, numeric "));
  CHECK_THAT(report.message, ContainsSubstring("1 of 8 elements"));
}

TEST_CASE("gradcheck tells of a failure even where a larger error is within bounds",
          "[gradcheck]") {
  // 2e-5 is wrong for a derivative near 0, 5e-4 is within rtol of one near 1.
  const Tensor x = leaf({0, 0});
  const auto f = [](const Inputs& in) {
    return record(
        "skewed", {in[0]},
        [](std::span<const Tensor> v) {
          return v[0] * tensor({0, 2}, DType::float64);
        },
        [](Sink& sink) {
          const Tensor g = sink.gradient() * tensor({0, 2.0005}, DType::float64);
          sink.add(0, g + tensor({2e-5, 0}, DType::float64));
        });
  };
  const auto report = gradcheck(f, {x});
  CHECK_FALSE(report);
  CHECK(report.index == std::vector<std::size_t>{0});
  CHECK(report.worst_error > 1e-4);  // that of the other one
}

TEST_CASE("gradgradcheck finds what gradcheck cannot", "[gradcheck]") {
  const Tensor x = leaf({1, 2});
  const auto f = [](const Inputs& in) { return square_once(in[0]); };
  CHECK(gradcheck(f, {x}));
  const auto report = gradgradcheck(f, {x});
  CHECK_FALSE(report);
  CHECK(report.input == 0);
  CHECK(report.analytic == 0);
}

TEST_CASE("NaN and infinity are failures", "[gradcheck]") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = leaf({1, 2});
  for (const double claim : {nan, inf}) {
    const auto report = gradcheck([&](const Inputs& in) { return wrong_at(in[0], 1, claim); }, {x});
    CHECK_FALSE(report);
    CHECK(report.index == std::vector<std::size_t>{1});
  }
  // numeric: log of a negative number
  CHECK_FALSE(gradcheck([](const Inputs& in) { return log(in[0]); }, {leaf({-1})}));
  // numeric infinite, and so the tolerance
  CHECK_FALSE(
      gradcheck([](const Inputs& in) { return pow(in[0], -1); }, {leaf({1e-6})}, {.eps = 1e-6}));
}

TEST_CASE("an infinite input that is masked out has gradient 0", "[gradcheck]") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(gradcheck([](const Inputs& in) { return exp(in[0]); }, {leaf({-inf, 1})}));
  CHECK_FALSE(gradcheck([](const Inputs& in) { return in[0] * 2.0; }, {leaf({-inf, 1})}));
}

TEST_CASE("gradcheck refuses what it cannot check", "[gradcheck]") {
  const auto f = [](const Inputs& in) { return in[0] * 2.0; };
  CHECK_THROWS_AS(gradcheck(f, {ones({2}).requires_grad_()}), DTypeError);
  CHECK_THROWS_WITH(
      gradcheck(f, {ones({2}).requires_grad_()}),
      ContainsSubstring("gradcheck: input 0 is float32") && ContainsSubstring("DType::float64"));
  CHECK_THROWS_AS(gradgradcheck(f, {ones({2}).requires_grad_()}), DTypeError);
  CHECK_THROWS_WITH(gradcheck(f, {ones({2}, DType::float64)}),
                    ContainsSubstring("nothing to check"));
  CHECK_THROWS_WITH(gradcheck(f, {leaf({1}) * 2.0}), ContainsSubstring("result of 'mul'"));
  CHECK_THROWS_WITH(
      gradcheck([](const Inputs& in) { return to(in[0], DType::float32); }, {leaf({1})}),
      ContainsSubstring("returned float32"));
  const auto random = [](const Inputs& in) {
    return in[0] * randn(Dims(in[0].shape()), DType::float64);
  };
  CHECK_THAT(gradcheck(random, {leaf({1})}).message, ContainsSubstring("same result every time"));
}

TEST_CASE("unused inputs and outputs without a graph have zero gradients", "[gradcheck]") {
  const Tensor used = leaf({1, 2}), unused = leaf({3});
  CHECK(gradcheck([](const Inputs& in) { return exp(in[0]); }, {used, unused}));
  CHECK(gradgradcheck([](const Inputs& in) { return exp(in[0]); }, {used, unused}));
  CHECK(gradcheck([](const Inputs&) { return ones({2}, DType::float64); }, {used}));
  // a gradient that is lost on the way
  const auto lost = gradcheck([](const Inputs& in) { return exp(in[0].detach()); }, {used});
  CHECK_FALSE(lost);
  CHECK(lost.analytic == 0);
  // undefined inputs, constants, and no elements
  CHECK(gradcheck([](const Inputs& in) { return in[1] * in[2]; },
                  {Tensor(), used, ones({2}, DType::float64)}));
  const auto none = gradcheck([](const Inputs& in) { return in[0] * 2.0; },
                              {zeros({0, 3}, DType::float64).requires_grad_()});
  CHECK(none);
  CHECK(none.checked == 0);
}

TEST_CASE("gradcheck restores the inputs bit for bit", "[gradcheck]") {
  const Tensor x = leaf({0.1, 1e-300, -3e20, 7});
  const std::vector<double> before(x.data<double>(), x.data<double>() + 4);
  const auto unchanged = [&] {
    return std::memcmp(before.data(), x.data<double>(), 4 * sizeof(double)) == 0;
  };
  gradcheck([](const Inputs& in) { return in[0] * in[0]; }, {x});
  CHECK(unchanged());
  gradgradcheck([](const Inputs& in) { return in[0] * in[0]; }, {x});
  CHECK(unchanged());
  int calls = 0;
  const auto throws = [&](const Inputs& in) {
    if (++calls == 7)
      throw std::runtime_error("enough");
    return in[0] * in[0];
  };
  CHECK_THROWS_WITH(gradcheck(throws, {x}), "enough");
  CHECK(unchanged());
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("gradcheck of a function that takes gradients itself", "[gradcheck]") {
  const Tensor x = leaf({0.5, 2});
  const auto f = [](const Inputs& in) {
    const Tensor y = sum(in[0] * in[0] * in[0]);
    return in[0] * grad({y}, {in[0]}, {.create_graph = true})[0];  // 3 x^3
  };
  CHECK(gradcheck(f, {x}));
  CHECK(gradgradcheck(f, {x}));
}
