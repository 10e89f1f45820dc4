// Functions that are right, and what gradcheck and eps_sweep tell of them: elements that no
// difference can judge, float32, numbers that are drawn.  planted_test.cpp has those that are
// wrong.

#include <cmath>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "autograd/check/verdict_cases.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using namespace xgrad::testing;
using Inputs = std::vector<Tensor>;
using Reason = GradcheckReason;

TEST_CASE("float32 inside is told about", "[gradcheck]") {
  const Tensor x = normal({4}, 7).requires_grad_();
  const auto converts = [](const Tensor& v) {
    return to(exp(to(v * 2.0, DType::float32)), DType::float64);
  };
  const auto agrees = gradcheck(converts, {x});
  CHECK(agrees);
  CHECK_THAT(agrees.message, ContainsSubstring("op 'to' makes a float32 Tensor of shape (4,)"));
  CHECK(gradcheck(
      one_op(converts, [](const Tensor& g, const Tensor& v) { return g * exp(v * 2.0) * 2.0; }),
      {x}));
  // a user's loop in float32 that returns float64
  const auto hidden = one_op(
      [](const Tensor& v) {
        std::vector<double> y = numbers(v);
        for (double& e : y)
          e = static_cast<double>(static_cast<float>(std::exp(e)));
        return Tensor(std::move(y));
      },
      [](const Tensor& g, const Tensor& v) { return g * exp(v); });
  const auto report =
      gradcheck([&](const Inputs& in) { return sum(hidden(in)[0] * 1.1) * in[0]; }, {x});
  CHECK(report);
  CHECK_THAT(report.message, ContainsSubstring("op 'planted' rounds to float32 inside"));
}

// (At 2^-10 float32's numbers are so near that the step of eps agrees.)
TEST_CASE("a cast to float32 is named wherever a gradient takes it", "[gradcheck]") {
  const auto cast = [](const Tensor& a) { return to(to(a, DType::float32), DType::float64); };
  const Tensor x = leaf({0x1p-10, 0x1p-12}), kink = leaf({1, 0});
  for (const bool fast : {false, true}) {
    const GradcheckOptions options{.strict = true, .fast_mode = fast};
    for (const auto& report :
         {gradcheck(cast, {x}, options),
          gradgradcheck([&](const Tensor& a) { return cast(a) * a; }, {x}, options)}) {
      CHECK(report);
      CHECK_THAT(report.message, ContainsSubstring("; float32 rounding: op 'to' makes a float32 "
                                                   "Tensor of shape (2,): compute in the inputs'"));
    }
    // numbers that no gradient takes, and those that are float32's by chance
    for (const TensorFunction& f :
         {TensorFunction([&](const Tensor& a) { return a * cast(a.detach()); }),
          TensorFunction([](const Tensor& a) { return clamp(a, double{0.1F}, 1); })})
      CHECK(gradcheck(f, {x}, options).explanation.empty());
  }
  // behind it a kink is unchecked, and a wrong factor wrong
  const auto report = gradcheck([&](const Tensor& a) { return relu(cast(a)); }, {kink});
  CHECK(report);
  CHECK(report.unchecked == 1);
  CHECK_THAT(report.message, ContainsSubstring("op 'to' makes a float32 Tensor"));
  CHECK_FALSE(gradcheck([&](const Tensor& a) { return cast(a) * cast(a).detach(); }, {x}));
}

TEST_CASE("right by another step than eps", "[gradcheck]") {
  for (const double x : {1e-10, 5e-9, 1e-8})  // 1 / x is a float32 by chance
    CHECK(gradcheck([](const Tensor& a) { return 1.0 / a; }, {leaf({x})}));
  CHECK(gradcheck([](const Tensor& a) { return sin(a) + 1e9; }, {normal({4}, 7).requires_grad_()}));
  CHECK(gradcheck([](const Tensor& a) { return sin(a * 10.0); }, {normal({4}, 7).requires_grad_()},
                  {.eps = 0.02}));
  for (const bool strict : {false, true}) {
    CHECK(gradcheck([](const Tensor& a) { return relu(a) * 3.0; }, {leaf({1, 3e-7, -2})},
                    {.strict = strict}));
    CHECK(
        gradcheck([](const Tensor& a) { return sqrt(a); }, {leaf({1, 1e-7})}, {.strict = strict}));
  }
}

TEST_CASE("unchecked: counted, listed, and a failure if strict", "[gradcheck]") {
  const auto unchecked = [](const TensorFunction& f, const Tensor& x, std::size_t n,
                            Reason expected) {
    const auto report = gradcheck(f, {x});
    INFO(report.table());
    CHECK(report);
    CHECK(report.unchecked == n);
    CHECK(report.pair(0, 0).unchecked == n);
    REQUIRE(report.unchecked_elements.size() == n);
    CHECK(std::string(to_string(report.unchecked_elements[0].reason)) == to_string(expected));
    CHECK_THAT(report.message, ContainsSubstring(report.unchecked_elements[0].message));
    CHECK_THAT(report.table(),
               ContainsSubstring("unchecked: " + report.unchecked_elements[0].message));
    for (const bool fast : {false, true}) {
      const auto strict = gradcheck(f, {x}, {.strict = true, .fast_mode = fast});
      CHECK_FALSE(strict);
      CHECK(strict.reason == report.unchecked_elements[0].reason);
    }
    return report;
  };
  const auto f = [](const Tensor& a) { return relu(a) * 3.0; };
  const auto kink = unchecked(f, leaf({1, 0, -2}), 1, Reason::kink);
  CHECK(kink.unchecked_elements[0].output_index == std::vector<std::size_t>{1});
  CHECK_THAT(kink.unchecked_elements[0].message,
             StartsWith("d output 0 (1) / d input 0 (1): a kink") && ContainsSubstring("0 and 3"));
  const auto log_of = [](const Tensor& a) { return log(a); };
  unchecked(log_of, leaf({1, -1}), 2, Reason::not_finite);
  unchecked([](const Tensor& a) { return a + 1e17; }, leaf(0.3), 1, Reason::rounding);
  unchecked([](const Tensor& a) { return tanh(a * 1e18); }, leaf(0), 1, Reason::truncation);
  unchecked([](const Tensor& a) { return a * 2.0; }, leaf({-inf, 1}), 1, Reason::not_finite);
  // infinite by its arguments, and the effect of an infinite slope on other rows
  const auto square = [](const Tensor& a) { return a * a; };
  unchecked(square, leaf({1e200}), 1, Reason::not_finite);
  unchecked([&](const Tensor& a) { return sum(square(a)); }, leaf({1e200, 1}), 2,
            Reason::not_finite);
  unchecked([](const Tensor& a) { return exp(a); }, leaf({710}), 1, Reason::not_finite);
  unchecked([](const Tensor& a) { return log(a - a.detach()); }, leaf({710}), 1,
            Reason::not_finite);
  CHECK(gradcheck([](const Tensor& a) { return log(sum(a) - a); }, {leaf({0, 2, 0})}));
  // a mask's infinity is a constant, whose gradient is 0
  const auto hidden = [](const Tensor& x) { return masked_fill(x, Mask{true, false}, -INFINITY); };
  CHECK(gradcheck([&](const Tensor& a) { return hidden(a); }, {leaf({-1, 1})}));
}

TEST_CASE("dropout is an ordinary function: the generator is reset before each call",
          "[gradcheck]") {
  const Tensor x = normal({20}, 7).requires_grad_();
  const std::string drawn = default_generator().state();
  const TensorFunction dropped = [](const Tensor& a) { return tanh(dropout(a, 0.5)); };
  for (const bool fast : {false, true}) {
    CHECK(gradcheck(dropped, {x}, {.fast_mode = fast}));
    CHECK(gradgradcheck(dropped, {x}, {.fast_mode = fast}));
  }
  CHECK_THAT(eps_sweep(dropped, {x}).conclusion, StartsWith("right"));
  CHECK(default_generator().state() == drawn);
}

TEST_CASE("every reason has a name", "[gradcheck]") {
  CHECK(std::string(to_string(Reason::none)) == "none");
  CHECK(std::string(to_string(Reason::unvisited)) == "unvisited");
  CHECK(std::string(to_string(Reason::unknown)) == "unknown");
}

TEST_CASE("a sweep over eps has a shape for each reason", "[gradcheck]") {
  const Tensor x = leaf({0.4, 1.1, -2});
  const auto sweep = eps_sweep([](const Tensor& a) { return sin(a) * a; }, {x});
  REQUIRE(sweep.points.size() == 10);
  CHECK(sweep.points.front().eps == Approx(0.1));
  CHECK(sweep.points.back().eps == Approx(1e-10));
  // truncation falls by 100 for each tenth of eps, rounding rises by about 10
  CHECK(sweep.points[0].error / sweep.points[1].error == Approx(100).epsilon(0.1));
  CHECK(sweep.points[1].error / sweep.points[2].error == Approx(100).epsilon(0.1));
  CHECK(sweep.points[9].error > 100 * sweep.best().error);
  CHECK(sweep.best().error < 1e-8);
  CHECK(sweep.best().eps <= 1.1e-4);
  CHECK(sweep.best().eps >= 0.9e-7);
  CHECK_THAT(sweep.conclusion, StartsWith("right:"));
  CHECK_THAT(sweep.table(), ContainsSubstring("1e-01") && ContainsSubstring("|####") &&
                                ContainsSubstring("<- smallest") && ContainsSubstring("right:"));

  const auto read = [](const TensorFunction& f, const Tensor& at) {
    return eps_sweep(f, {at}).conclusion;
  };
  CHECK_THAT(
      read([](const Tensor& a) { return to(sin(to(a, DType::float32)), DType::float64); }, x),
      ContainsSubstring("float32 inside"));
  CHECK_THAT(read([](const Tensor& a) { return relu(a); }, leaf({1, 3e-6, -2})),
             ContainsSubstring("a kink between 1e-06 and 1e-05"));
  CHECK_THAT(read([](const Tensor& a) { return relu(a); }, leaf({1, 0, -2})), StartsWith("flat:"));
  CHECK_THAT(read(one_op([](const Tensor& v) { return v * v; },
                         [](const Tensor& g, const Tensor& v) { return g * v; }),
                  x),
             StartsWith("flat:"));
  CHECK_THAT(read([](const Tensor& a) { return exp(a.detach()); }, x), !StartsWith("right"));
  CHECK_THAT(read([](const Tensor& a) { return log(a); }, leaf({-1})), StartsWith("not finite"));
  CHECK_THROWS_WITH(eps_sweep([](const Tensor& a) { return a; }, {ones({1}).requires_grad_()}),
                    ContainsSubstring("eps_sweep: input 0 is float32"));
  CHECK_THAT(read([](const Tensor& a) { return sin(a * 1e13); }, leaf({1e-13, -2e-13})),
             StartsWith("right:"));
  CHECK_THROWS_AS(EpsSweep().best(), ValueError);
}
