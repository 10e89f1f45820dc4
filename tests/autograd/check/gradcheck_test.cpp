#include <cstring>
#include <limits>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "autograd/check/verdict_cases.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using namespace xgrad::testing;
using Inputs = std::vector<Tensor>;

namespace {

// 2 x, whose derivative is claimed to be `claim`, at element `at` of x only.
Tensor wrong_at(const Tensor& x, std::size_t at, double claim) {
  return record(
      "wrong", {x}, [](std::span<const Tensor> in) { return in[0] * 2.0; },
      [at, claim](Context& ctx) {
        Tensor g = clone(ctx.gradient() * 2.0);
        set_element(g, at, numbers(g)[at] * claim / 2);
        ctx.add(0, g);
      });
}

}  // namespace

TEST_CASE("gradcheck agrees with right gradients", "[gradcheck]") {
  const Tensor x = leaf({{0.5, -1}, {2, 0.25}}), w = leaf({3, -2});
  const auto f = [](const Inputs& in) { return exp(in[0]) * in[1] + in[0] * in[0]; };
  const auto report = gradcheck(f, {x, w});
  CHECK(report);
  CHECK(report.reason == GradcheckReason::none);
  CHECK(report.checked == 4 * 6);  // outputs times inputs
  CHECK(report.disagree == 0);
  CHECK(report.worst_error < 1e-8);
  CHECK_THAT(report.message, ContainsSubstring("gradcheck: all 24 elements agree"));
  const auto second = gradgradcheck(f, {x, w});
  CHECK(second);
  CHECK(second.checked == 6 * (6 + 4));  // in the inputs and in the cotangent
}

TEST_CASE("gradcheck names the element of a wrong gradient", "[gradcheck]") {
  const Tensor a = leaf({1, 2}), x = leaf({{1, 2, 3}, {4, 5, 6}});
  const auto f = [](const Inputs& in) { return sum(in[0]) * wrong_at(in[1], 4, 0.125); };
  const auto report = gradcheck(f, {a, x});
  CHECK_FALSE(report);
  CHECK(report.reason == GradcheckReason::unknown);
  CHECK_THAT(report.explanation, ContainsSubstring("1 of 6 elements of input 1: (1, 1)"));
  CHECK_THAT(report.explanation, ContainsSubstring("1 of 6 elements of output 0: (1, 1)"));
  const GradcheckElement& worst = report.worst().worst;
  CHECK(report.worst().input == 1);
  CHECK(worst.input_index == std::vector<std::size_t>{1, 1});
  CHECK(worst.output_index == std::vector<std::size_t>{1, 1});
  CHECK(worst.analytic == 3 * 0.125);
  CHECK(worst.numeric == Approx(3 * 2));
  CHECK(worst.error == std::abs(worst.analytic - worst.numeric));
  CHECK(report.worst_error > 0.9);
  CHECK(report.disagree == 1);
  CHECK(report.pair(0, 0).disagree == 0);
  CHECK(report.pair(0, 1).disagree == 1);
  CHECK_THAT(
      report.message,
      StartsWith("gradcheck: d output 0 (1, 1) / d input 1 (1, 1): analytic 0.375, numeric "));
  CHECK_THAT(report.message, ContainsSubstring("1 of 48 elements"));
  CHECK(report.message.find('\n') == std::string::npos);
}

TEST_CASE("gradcheck names the first of elements that are wrong by as much", "[gradcheck]") {
  const Tensor x = leaf({0.3, 0.31, -0.2, 0.07, 0.45, -0.11, 0.123, 0.2});
  const auto f = one_op([](const Tensor& v) { return v * v; },
                        [](const Tensor& g, const Tensor& v) { return g * (v * 2 + 0.5); });
  const auto report = gradcheck(f, {x});
  CHECK(report.disagree == 8);
  CHECK(report.worst().worst.input_index == std::vector<std::size_t>{0});
}

TEST_CASE("gradcheck tells of a failure even where a larger error is within bounds",
          "[gradcheck]") {
  // 2e-5 is wrong for a derivative near 0, 5e-4 is within rtol of one near 1.
  const Tensor x = leaf({0, 0});
  const auto f = one_op(
      [](const Tensor& v) { return v * tensor({0, 2}, DType::float64); },
      [](const Tensor& g, const Tensor&) { return g * tensor({2e-5, 2.0005}, DType::float64); });
  const auto report = gradcheck(f, {x});
  CHECK_FALSE(report);
  CHECK(report.worst().worst.output_index == std::vector<std::size_t>{0});
  CHECK(report.worst().worst.numeric == 0);
  CHECK(report.worst_error > 1e-4);  // the other input's
}

TEST_CASE("gradcheck rejects functions that it cannot check", "[gradcheck]") {
  const auto f = [](const Tensor& a) { return a * 2.0; };
  CHECK_THROWS_AS(gradcheck(f, {ones({2}).requires_grad_()}), DTypeError);
  CHECK_THROWS_WITH(
      gradcheck(f, {ones({2}).requires_grad_()}),
      ContainsSubstring("gradcheck: input 0 is float32") && ContainsSubstring("DType::float64"));
  CHECK_THROWS_AS(gradgradcheck(f, {ones({2}).requires_grad_()}), DTypeError);
  CHECK_THROWS_WITH(gradcheck(f, {ones({2}, DType::float64)}),
                    ContainsSubstring("nothing to check"));
  CHECK_THROWS_WITH(gradcheck(f, {leaf({1}) * 2.0}), ContainsSubstring("result of 'mul'"));
  CHECK_THROWS_WITH(gradcheck([](const Tensor& a) { return to(a, DType::float32); }, {leaf({1})}),
                    ContainsSubstring("returned float32"));
  CHECK_THROWS_WITH(gradcheck([](const Inputs&) { return Tensor(); }, {leaf({1})}),
                    ContainsSubstring("output 0 is undefined"));
  CHECK_THROWS_WITH(gradcheck([](const Inputs&) { return Inputs(); }, {leaf({1})}),
                    ContainsSubstring("returned no Tensor"));
  const Tensor twice = leaf({1});
  CHECK_THROWS_WITH(gradcheck(f, {twice, twice}),
                    ContainsSubstring("input 0 and input 1 are one Tensor: pass it once"));
  CHECK_THROWS_WITH(gradcheck(f, {leaf({1})}, {.eps = 0}), ContainsSubstring("eps is 0"));
  CHECK_THROWS_WITH(gradcheck(f, {leaf({1})}, {.rtol = -1}), ContainsSubstring("rtol is -1"));
  CHECK_THROWS_WITH(gradcheck(f, {leaf({1})}, {.names = {"a", "b"}}),
                    ContainsSubstring("2 names for 1 inputs"));
  std::size_t size = 1;
  CHECK_THROWS_WITH(gradcheck([&](const Tensor& a) { return expand(a, {++size}); }, {leaf({1})}),
                    ContainsSubstring("output 0 changes its shape: (2,), (3,)"));
  Generator own(1);
  const auto random = [&](const Tensor& a) {
    return a * randn(Dims(a.shape()), own, DType::float64);
  };
  CHECK_THAT(gradcheck(random, {leaf({1})}).message, ContainsSubstring("same result every time"));
}

TEST_CASE("unused inputs and outputs without a graph have zero gradients", "[gradcheck]") {
  const Tensor used = leaf({1, 2}), unused = leaf({3});
  CHECK(gradcheck([](const Inputs& in) { return exp(in[0]); }, {used, unused}));
  CHECK(gradgradcheck([](const Inputs& in) { return exp(in[0]); }, {used, unused}));
  CHECK(gradcheck([](const Inputs&) { return ones({2}, DType::float64); }, {used}));
  // undefined inputs, constants, and no elements
  CHECK(gradcheck([](const Inputs& in) { return in[1] * in[2]; },
                  {Tensor(), used, ones({2}, DType::float64)}));
  const auto none = gradcheck([](const Tensor& a) { return a * 2.0; },
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
  gradcheck([](const Tensor& a) { return a * a; }, {x});
  CHECK(unchanged());
  gradgradcheck([](const Tensor& a) { return a * a; }, {x});
  CHECK(unchanged());
  int calls = 0;
  const auto throws = [&](const Tensor& a) {
    if (++calls == 7)
      throw std::runtime_error("enough");
    return a * a;
  };
  CHECK_THROWS_WITH(gradcheck(throws, {x}), "enough");
  CHECK(unchanged());
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("the defaults of gradcheck are PyTorch's", "[gradcheck]") {
  const GradcheckOptions options;
  CHECK(options.eps == 1e-6);
  CHECK(options.atol == 1e-5);
  CHECK(options.rtol == 1e-3);
  CHECK_FALSE(options.fast_mode);
  // Just within the bounds, and just outside: |analytic - numeric| <= atol + rtol * |numeric|
  const auto f = [](double claim) {
    return [claim](const Tensor& a) { return wrong_at(a, 0, claim); };
  };
  CHECK(gradcheck(f(2 + 2e-3 + 0.9e-5), {leaf({1})}));
  CHECK_FALSE(gradcheck(f(2 + 2e-3 + 1.1e-5), {leaf({1})}));
  CHECK(gradcheck(f(2.1), {leaf({1})}, {.rtol = 0.06}));
  CHECK(gradcheck(f(2.1), {leaf({1})}, {.atol = 0.11}));
}

TEST_CASE("gradcheck of several outputs, one by one", "[gradcheck]") {
  const Tensor a = leaf({1, 2}), b = leaf({{3, 4}});
  const auto f = [](const Inputs& in) {
    return Inputs{exp(in[0]), wrong_at(in[1], 1, 3), sum(in[0] * in[1])};
  };
  const auto report = gradcheck(f, {a, b}, {.names = {"left", "right"}});
  CHECK_FALSE(report);
  REQUIRE(report.pairs.size() == 6);
  CHECK(report.checked == (2 + 2 + 1) * (2 + 2));
  CHECK(report.disagree == 1);
  for (const GradcheckPair& pair : report.pairs)
    CHECK(pair.disagree == (pair.output == 1 && pair.input == 1 ? 1 : 0));
  const GradcheckPair& pair = report.pair(1, 1);
  CHECK(&report.worst() == &pair);
  CHECK(pair.output_name == "output 1");
  CHECK(pair.input_name == "right");
  CHECK(pair.output_shape == Shape{1, 2});
  CHECK(pair.analytic.shape() == Shape{2, 2});
  CHECK(pair.analytic.data<double>()[3] == 3);
  CHECK(pair.numeric.data<double>()[3] == Approx(2));
  CHECK_THAT(report.message, StartsWith("gradcheck: d output 1 (0, 1) / d right (0, 1): "));
  CHECK_THROWS_WITH(report.pair(3, 0), ContainsSubstring("output 3 with input 0"));
  CHECK_THROWS_AS(report.error_map(0, 2), ValueError);

  const auto unshaped = gradcheck(one_op([](const Tensor& x) { return x * 2.0; },
                                         [](const Tensor& g, const Tensor&) { return sum(g); }),
                                  {a});
  CHECK(unshaped.pairs.empty());
  CHECK_THROWS_WITH(unshaped.worst(), ContainsSubstring("nothing was compared"));
  CHECK_THAT(unshaped.table(), ContainsSubstring("has shape ()"));

  CHECK(gradcheck([](const Tensor& x) { return Inputs{x, x}; }, {a}));
  const auto right = [](const Inputs& in) { return Inputs{exp(in[0]), in[0] * in[1]}; };
  CHECK(gradcheck(right, {a, b}));
  const auto second = gradgradcheck(right, {a, b});
  CHECK(second);
  CHECK(second.pairs.size() == 2 * (2 + 2));  // two gradients; two inputs and two cotangents
  CHECK(second.pair(1, 3).output_name == "gradient of input 1");
  CHECK(second.pair(1, 3).input_name == "cotangent 1");
}

TEST_CASE("a gradcheck report as a table and an error map", "[gradcheck]") {
  const Tensor x = leaf({{1, 2, 3}, {4, 5, 6}}), c = leaf({1, 1, 1});
  const auto report =
      gradcheck([](const Inputs& in) { return wrong_at(in[0], 4, 2.2) + in[1]; }, {x, c});
  const std::string table = report.table();
  CHECK_THAT(table, StartsWith("output    input    shape   elements  disagree  zero  worst error"));
  CHECK_THAT(table, ContainsSubstring("input 1  (3,)          18         0    12  "));
  CHECK_THAT(table, ContainsSubstring("input 0  (2, 3)        36         1    30  0.2 "));
  CHECK_THAT(table, ContainsSubstring("(1, 1) / (1, 1)"));
  CHECK_THAT(table, ContainsSubstring(report.message));

  const Tensor error = report.error_map(0, 0);
  CHECK(error.shape() == Shape{6, 6});
  for (std::size_t i = 0; i < 36; ++i)
    CHECK(std::abs(error.data<double>()[i] - (i == 4 * 6 + 4 ? 0.2 : 0)) < 1e-8);
}

TEST_CASE("fast mode compares products", "[gradcheck]") {
  const Tensor x = leaf({{0.5, -1}, {2, 0.25}}), w = leaf({3, -2});
  int calls = 0;
  const auto f = [&](const Inputs& in) {
    ++calls;
    return exp(in[0]) * in[1] + in[0] * in[0];
  };
  const auto report = gradcheck(f, {x, w}, {.fast_mode = true});
  CHECK(report);
  CHECK(report.fast_mode);
  CHECK(report.checked == 2);
  CHECK(calls <= 12);
  CHECK_THAT(report.message, ContainsSubstring("all 2 products agree"));
  CHECK_THROWS_WITH(report.error_map(0, 0), ContainsSubstring("fast mode keeps no Jacobian"));
  CHECK(gradgradcheck(f, {x, w}, {.fast_mode = true}));
  // another seed means other directions
  const auto other = gradcheck(f, {x, w}, {.fast_mode = true, .seed = 1});
  CHECK(other.pair(0, 0).numeric.item() != report.pair(0, 0).numeric.item());
  // a failure is reported in full
  const auto wrong =
      gradcheck([](const Tensor& a) { return wrong_at(a, 1, 2.5); }, {x}, {.fast_mode = true});
  CHECK_FALSE(wrong);
  CHECK_FALSE(wrong.fast_mode);
  CHECK(wrong.checked == 16);
  CHECK(wrong.worst().worst.input_index == std::vector<std::size_t>{0, 1});
  CHECK_THAT(wrong.table(), ContainsSubstring("note: fast mode found a disagreement"));
  // a mask's infinity is not moved
  CHECK(gradcheck([](const Tensor& a) { return exp(a); }, {leaf({-inf, 1})}, {.fast_mode = true}));
}

TEST_CASE("gradcheck works where gradients are off, and leaves them so", "[gradcheck]") {
  const NoGrad no_grad;
  CHECK(gradcheck([](const Tensor& a) { return exp(a); }, {leaf({1})}).worst().numeric.item() > 2);
  CHECK_FALSE(Mode::current().grad_enabled);
}
