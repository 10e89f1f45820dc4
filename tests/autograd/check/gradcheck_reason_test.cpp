// Each reason that gradcheck can give: a mistake of that kind, and the report.

#include <cmath>
#include <memory>
#include <numbers>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;
using Reason = GradcheckReason;

namespace {

Tensor random_leaf(const Dims& sizes) { return normal(sizes, 7).requires_grad_(); }

// y = forward(x); `backward` computes its gradient from the cotangent and x.
using Forward = std::function<Tensor(const Tensor&)>;
using Backward = std::function<Tensor(const Tensor& cotangent, const Tensor&)>;
TensorFunction op(const Forward& forward, const Backward& backward) {
  return [=](const Inputs& in) {
    return record(
        "planted", {in[0]}, [=](std::span<const Tensor> v) { return forward(v[0]); },
        [=, x = Saved(in[0])](Context& ctx) { ctx.add(0, backward(ctx.gradient(), x.tensor())); });
  };
}

GradcheckReport check(const TensorFunction& f, const Tensor& x, Reason expected) {
  const auto report = gradcheck(f, {x});
  INFO(report.message);
  CHECK_FALSE(report);
  CHECK(std::string(to_string(report.reason)) == to_string(expected));
  CHECK_THAT(report.message, ContainsSubstring(report.explanation));
  CHECK(report.message.find('\n') == std::string::npos);
  return report;
}

const Forward cube = [](const Tensor& x) { return x * x * x; };
const Backward cube_gradient = [](const Tensor& g, const Tensor& x) { return g * x * x * 3.0; };

}  // namespace

TEST_CASE("reason: a missing factor, by name", "[gradcheck]") {
  const Tensor x = random_leaf({2, 8});
  CHECK(gradcheck(op(cube, cube_gradient), {x}));
  const auto times = [&](double c) {
    return op(cube, [c](const Tensor& g, const Tensor& v) { return g * v * v * (3 * c); });
  };
  const auto told = [&](double c) { return check(times(c), x, Reason::wrong_factor).explanation; };
  CHECK_THAT(told(2), ContainsSubstring("analytic = 2 × numeric (dimension 0") &&
                          ContainsSubstring("multiply the gradient by 1/2"));
  CHECK_THAT(told(0.125), ContainsSubstring("0.125 = 1/8 = 1/√64") &&
                              ContainsSubstring("dimension 1 of input 0 is 8") &&
                              ContainsSubstring("multiply the gradient by 8"));
  CHECK_THAT(told(1 / std::sqrt(8)), ContainsSubstring("= 1/√8") &&
                                         ContainsSubstring("dimension 1 of input 0 is 8") &&
                                         ContainsSubstring("by √8"));
  CHECK_THAT(told(1.0 / 16), ContainsSubstring("the number of elements of input 0 is 16"));
  CHECK_THAT(told(8), ContainsSubstring("8 × numeric; 8 = √64 (dimension 1 of output 0 is 8"));
  CHECK_THAT(told(2.0 / 3), ContainsSubstring("= 2/3:"));
  CHECK_THAT(told(-2), ContainsSubstring("analytic = -2 × numeric"));
  CHECK_THAT(told(std::sqrt(2 / std::numbers::pi)), ContainsSubstring("= √(2/π)"));
  CHECK_THAT(told(1.0 / 640), ContainsSubstring("= 1/640"));
  CHECK_THAT(told(0.7613), ContainsSubstring("0.7613 × numeric: multiply the gradient by 1.31354"));
}

TEST_CASE("reason: a missing factor where the others are right", "[gradcheck]") {
  const auto f = op(cube, [](const Tensor& g, const Tensor& x) {
    return g * x * x * tensor({3, 1.5, 3, 1.5}, DType::float64);
  });
  const auto report = check(f, leaf({1, 2, 3, 4}), Reason::wrong_factor);
  CHECK_THAT(report.explanation, ContainsSubstring("0.5 × numeric in those that disagree") &&
                                     ContainsSubstring("diagonal, 2 of 4"));
}

TEST_CASE("reason: a wrong sign", "[gradcheck]") {
  const auto f = op(cube, [](const Tensor& g, const Tensor& x) { return g * x * x * -3.0; });
  check(f, random_leaf({3}), Reason::wrong_sign);
}

TEST_CASE("reason: absent", "[gradcheck]") {
  const Tensor x = random_leaf({3});
  auto report = check([](const Inputs& in) { return exp(in[0].detach()); }, x, Reason::absent);
  CHECK_THAT(report.explanation, ContainsSubstring("does not lead to input 0"));
  REQUIRE(report.notes.size() == 1);
  CHECK_THAT(report.notes[0], ContainsSubstring("no graph leads from output 0"));

  // Names the op that adds nothing, and the input.
  const auto half = [](const Inputs& in) {
    const Tensor y = exp(in[0]);
    return record(
        "half", {in[1], y}, [](std::span<const Tensor> v) { return v[0] * v[1]; },
        [y = Saved(y)](Context& ctx) { ctx.add(0, ctx.gradient() * y.tensor()); });
  };
  const auto named = gradcheck(half, {x, random_leaf({3})});
  CHECK(named.reason == Reason::absent);
  CHECK_THAT(named.message,
             ContainsSubstring("no gradient of output 0 arrives at input 0: op 2, half: ") &&
                 ContainsSubstring("no gradient for input 1") && !ContainsSubstring("detach"));

  report =
      check(op(cube, [](const Tensor& g, const Tensor&) { return g * 0.0; }), x, Reason::absent);
  CHECK_THAT(report.explanation, ContainsSubstring("zero everywhere"));

  report = check(op(cube,
                    [](const Tensor& g, const Tensor& v) {
                      return g * v * v * tensor({3, 0, 3}, DType::float64);
                    }),
                 x, Reason::absent);
  CHECK_THAT(report.explanation, ContainsSubstring("1 of 3 elements of input 0: (1)"));
}

TEST_CASE("reason: spurious", "[gradcheck]") {
  // a straight-through estimator: the value goes in steps, the gradient passes
  const auto f = op([](const Tensor& x) { return where(x > zeros_like(x), ones_like(x), -1.0); },
                    [](const Tensor& g, const Tensor&) { return g * 1.0; });
  check(f, random_leaf({3}), Reason::spurious);
}

TEST_CASE("reason: transposed", "[gradcheck]") {
  const auto weights = [] { return tensor({{1, 2, 3}, {4, 5, 6}, {7, 8, 10}}, DType::float64); };
  // the Jacobian: y = W x, where the backward should multiply by Wᵀ
  auto report = check(op([=](const Tensor& x) { return matmul(weights(), x); },
                         [=](const Tensor& g, const Tensor&) { return matmul(weights(), g); }),
                      random_leaf({3}), Reason::transposed);
  CHECK_THAT(report.explanation, ContainsSubstring("J v where it should compute Jᵀ v"));
  // the gradient of a matrix, square or reshaped
  for (const std::size_t columns : {std::size_t{3}, std::size_t{2}}) {
    const Tensor x = random_leaf({2, 3, columns});
    report = check(op(cube,
                      [](const Tensor& g, const Tensor& v) {
                        return reshape(transpose(g * v * v * 3.0, 1, 2), v.shape());
                      }),
                   x, Reason::transposed);
    CHECK_THAT(report.explanation, ContainsSubstring("the gradient of input 0 (2, 3, "));
  }
  // the cotangent
  report = check(op([=](const Tensor& x) { return matmul(x, weights()); },
                    [=](const Tensor& g, const Tensor&) {
                      return matmul(transpose(g, 0, 1), transpose(weights(), 0, 1));
                    }),
                 random_leaf({3, 3}), Reason::transposed);
  CHECK_THAT(report.explanation, ContainsSubstring("takes the cotangent of output 0 (3, 3)"));
}

TEST_CASE("reason: a gradient of the wrong shape or dtype", "[gradcheck]") {
  const Tensor x = random_leaf({2, 3});
  auto report = check(op(cube, [](const Tensor& g, const Tensor& v) { return sum(g * v, {0}); }), x,
                      Reason::wrong_shape);
  CHECK_THAT(
      report.explanation,
      ContainsSubstring("planted: gradient 0 has shape (3,) but its Tensor has shape (2, 3)"));
  CHECK(report.pairs.empty());
  CHECK_THROWS_WITH(report.worst(), ContainsSubstring("nothing was compared"));
  CHECK_THAT(report.table(), ContainsSubstring("has shape (3,)"));
  // an op within the formula
  check(op(cube, [](const Tensor& g, const Tensor& v) { return matmul(g, v); }), x,
        Reason::wrong_shape);
  report = check(op(cube, [](const Tensor& g, const Tensor&) { return to(g, DType::float32); }), x,
                 Reason::wrong_dtype);
  CHECK_THAT(report.explanation, ContainsSubstring("gradient 0 is float32"));
  // in the gradient's gradient
  const auto second = gradgradcheck(
      op(cube,
         [](const Tensor& g, const Tensor& v) {
           return record(
               "inner", {g}, [=](std::span<const Tensor> in) { return in[0] * v * v * 3.0; },
               [](Context& ctx) { ctx.add(0, sum(ctx.gradient())); });
         }),
      {x});
  CHECK(second.reason == Reason::wrong_shape);
  CHECK_THAT(second.message, ContainsSubstring("inner: gradient 0 has shape ()"));
}

TEST_CASE("reason: float32 rounding", "[gradcheck]") {
  const Tensor x = random_leaf({4});
  // names a converting op where larger steps agree, too
  const auto converts = [](double factor) {
    return op([](const Tensor& v) { return to(exp(to(v * 2.0, DType::float32)), DType::float64); },
              [=](const Tensor& g, const Tensor& v) { return g * exp(v * 2.0) * factor; });
  };
  const auto agrees = gradcheck(
      [](const Inputs& in) { return to(exp(to(in[0] * 2.0, DType::float32)), DType::float64); },
      {x});
  CHECK(agrees);
  CHECK_THAT(agrees.message, ContainsSubstring("op 'to' makes a float32 Tensor of shape (4,)"));
  CHECK(gradcheck(converts(2), {x}));
  auto report = check(converts(3), x, Reason::float32_rounding);
  // a user's loop in float32 that returns float64
  const auto hidden = op(
      [](const Tensor& v) {
        std::vector<double> y = numbers(v);
        for (double& e : y)
          e = static_cast<double>(static_cast<float>(std::exp(e)));
        return Tensor(std::move(y));
      },
      [](const Tensor& g, const Tensor& v) { return g * exp(v); });
  report = gradcheck([&](const Inputs& in) { return sum(hidden(in)[0] * 1.1) * in[0]; }, {x});
  CHECK(report);
  CHECK_THAT(report.message, ContainsSubstring("op 'planted' rounds to float32 inside"));
}

TEST_CASE("right by another step than eps", "[gradcheck]") {
  for (const double x : {1e-10, 5e-9, 1e-8})  // 1 / x is a float32 by chance
    CHECK(gradcheck([](const Inputs& in) { return 1.0 / in[0]; }, {leaf({x})}));
  CHECK(gradcheck([](const Inputs& in) { return sin(in[0]) + 1e9; }, {random_leaf({4})}));
  CHECK(gradcheck([](const Inputs& in) { return sin(in[0] * 10.0); }, {random_leaf({4})},
                  {.eps = 0.02}));
  for (const bool strict : {false, true}) {
    CHECK(gradcheck([](const Inputs& in) { return relu(in[0]) * 3.0; }, {leaf({1, 3e-7, -2})},
                    {.strict = strict}));
    CHECK(gradcheck([](const Inputs& in) { return sqrt(in[0]); }, {leaf({1, 1e-7})},
                    {.strict = strict}));
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
  const auto f = [](const Inputs& in) { return relu(in[0]) * 3.0; };
  const auto kink = unchecked(f, leaf({1, 0, -2}), 1, Reason::kink);
  CHECK(kink.unchecked_elements[0].output_index == std::vector<std::size_t>{1});
  CHECK_THAT(kink.unchecked_elements[0].message,
             StartsWith("d output 0 (1) / d input 0 (1): a kink") && ContainsSubstring("0 and 3"));
  const auto log_of = [](const Inputs& in) { return log(in[0]); };
  unchecked(log_of, leaf({1, -1}), 2, Reason::not_finite);
  unchecked([](const Inputs& in) { return in[0] + 1e17; }, leaf(0.3), 1, Reason::rounding);
  unchecked([](const Inputs& in) { return tanh(in[0] * 1e18); }, leaf(0), 1, Reason::truncation);
  unchecked([](const Inputs& in) { return in[0] * 2.0; }, leaf({-inf, 1}), 1, Reason::not_finite);
  // infinite by its arguments, and the effect of an infinite slope on other rows
  const auto square = [](const Inputs& in) { return in[0] * in[0]; };
  unchecked(square, leaf({1e200}), 1, Reason::not_finite);
  unchecked([&](const Inputs& in) { return sum(square(in)); }, leaf({1e200, 1}), 2,
            Reason::not_finite);
  unchecked([](const Inputs& in) { return exp(in[0]); }, leaf({710}), 1, Reason::not_finite);
  unchecked([](const Inputs& in) { return log(in[0] - in[0].detach()); }, leaf({710}), 1,
            Reason::not_finite);
  CHECK(gradcheck([](const Inputs& in) { return log(sum(in[0]) - in[0]); }, {leaf({0, 2, 0})}));
  // a mask's infinity is a constant, whose gradient is 0
  const auto hidden = [](const Tensor& x) { return masked_fill(x, Mask{true, false}, -INFINITY); };
  CHECK(gradcheck([&](const Inputs& in) { return hidden(in[0]); }, {leaf({-1, 1})}));
  CHECK_FALSE(gradcheck(op(hidden, [](const Tensor& g, const Tensor&) { return g * 1.0; }),
                        {leaf({-1, 1})}));
  // a wrong gradient at a kink is still wrong
  const auto wrong = op([](const Tensor& x) { return abs(x); },
                        [](const Tensor& g, const Tensor&) { return g * 5.0; });
  CHECK_FALSE(gradcheck(wrong, {leaf({0})}));
}

TEST_CASE("reason: nondeterminism", "[gradcheck]") {
  const Tensor x = random_leaf({20});
  // The default generator is reset before each call, so dropout is an ordinary function.
  const std::string drawn = default_generator().state();
  const TensorFunction dropped = [](const Inputs& in) { return tanh(dropout(in[0], 0.5)); };
  for (const bool fast : {false, true}) {
    CHECK(gradcheck(dropped, {x}, {.fast_mode = fast}));
    CHECK(gradgradcheck(dropped, {x}, {.fast_mode = fast}));
  }
  CHECK_THAT(eps_sweep(dropped, {x}).conclusion, StartsWith("right"));
  CHECK(default_generator().state() == drawn);
  Generator own(1);
  auto report = check([&](const Inputs& in) { return in[0] * randn({20}, own, DType::float64); }, x,
                      Reason::nondeterministic);
  CHECK_THAT(report.explanation, ContainsSubstring("the same result every time"));
  // A backward that draws is named.
  const auto draws =
      op(cube, [](const Tensor& g, const Tensor& v) { return dropout(g * v * v * 3.0, 0.5); });
  report =
      check([&](const Inputs& in) { return draws({in[0] * 2.0})[0]; }, x, Reason::nondeterministic);
  for (const std::string& said : {report.explanation, explain_gradient(draws, {x}).message})
    CHECK_THAT(said, ContainsSubstring(", planted") &&
                         ContainsSubstring("two runs of its backward give different gradients"));
  CHECK_THAT(report.explanation, ContainsSubstring("op 2, planted: "));
  // in the gradient alone: between two graphs, and between two runs of one
  auto calls = std::make_shared<int>(0);
  report =
      check(op(cube, [calls](const Tensor& g,
                             const Tensor& v) { return g * v * v * (3.0 + 1e-14 * ++*calls); }),
            x, Reason::nondeterministic);
  CHECK_THAT(report.explanation, ContainsSubstring("two runs gave the gradients"));
  const auto per_graph = [calls](const Inputs& in) {
    const double factor = 3.0 + 1e-14 * ++*calls;
    return op(cube,
              [factor](const Tensor& g, const Tensor& v) { return g * v * v * factor; })(in)[0];
  };
  check(per_graph, x, Reason::nondeterministic);
  CHECK(gradcheck(per_graph, {x}, {.fast_mode = true}).reason == Reason::nondeterministic);
  // a formula that depends on an earlier run
  check(
      [](const Inputs& in) {
        const auto runs = std::make_shared<int>(0);
        return op(cube, [runs](const Tensor& g, const Tensor& v) {
          return g * v * v * (3.0 + 1e-14 * ++*runs);
        })(in)[0];
      },
      x, Reason::nondeterministic);
}

TEST_CASE("reason: a gradient that is not finite", "[gradcheck]") {
  const auto report =
      check(op(cube, [](const Tensor& g, const Tensor& x) { return g * cube(x) / x * 3.0; }),
            leaf({1, 0}), Reason::not_finite);
  CHECK_THAT(report.explanation, ContainsSubstring("its analytic gradient is not"));
}

TEST_CASE("reason: inputs are modified", "[gradcheck]") {
  const Tensor x = leaf({1, 2}), constant = tensor({3, 4}, DType::float64);
  auto report = check(
      [](const Inputs& in) {
        Tensor handle = in[0];
        set_element(handle, 1, 3);
        return handle * 2.0;
      },
      x, Reason::inputs_modified);
  CHECK_THAT(report.explanation,
             ContainsSubstring("the function changes input 0 at (1), which was 2 and is 3"));
  CHECK(x.data<double>()[1] == 2);  // set back
  const auto adds = [](const Inputs& in) {
    set_element(Tensor(in[0]), 1, in[0].data<double>()[1] + 1);
    return in[0] * 2.0;
  };
  CHECK_THAT(gradgradcheck(adds, {x}).explanation, ContainsSubstring("was 2 and is 3"));
  // hidden from the library, in a constant, in the backward
  const auto rude = [](const Inputs& in) {
    return record(
        "rude", {in[0], in[1]}, [](std::span<const Tensor> v) { return v[0] * v[1]; },
        [c = Saved(in[1])](Context& ctx) {
          ctx.add(0, ctx.gradient() * c.tensor());
          c.value->writable_data<double>()[0] = 9;
        });
  };
  report = gradcheck(rude, {x, constant});
  CHECK(report.reason == Reason::inputs_modified);
  CHECK_THAT(report.explanation, ContainsSubstring("input 1 at (0), which was 3 and is 9"));
  CHECK(constant.data<double>()[0] == 3);
}

TEST_CASE("reason: not linear in the cotangent", "[gradcheck]") {
  const Tensor x = random_leaf({3});
  // a term that does not multiply the cotangent
  auto report =
      check(op(cube, [](const Tensor& g, const Tensor& v) { return g * v * v * 3.0 + 1e-3; }), x,
            Reason::not_linear);
  CHECK_THAT(report.explanation, ContainsSubstring("a zero cotangent for output 0 gives 0.001"));
  CHECK(report.disagree >= 6);  // all off the diagonal
  // right for every unit vector
  report = check(op(cube, [](const Tensor& g, const Tensor& v) { return g * g * v * v * 3.0; }), x,
                 Reason::not_linear);
  CHECK(report.disagree == 0);
}

TEST_CASE("reason: unknown, and where", "[gradcheck]") {
  const auto f = op(cube, [](const Tensor& g, const Tensor& x) {
    return g * x * x * tensor({3, 2, 4, 3}, DType::float64);
  });
  const auto report = check(f, leaf({1, 2, 3, 4}), Reason::unknown);
  CHECK_THAT(report.explanation, ContainsSubstring("on the diagonal, 2 of 4"));
}

TEST_CASE("every reason has a name", "[gradcheck]") {
  CHECK(std::string(to_string(Reason::none)) == "none");
  CHECK(std::string(to_string(Reason::unvisited)) == "unvisited");
  CHECK(std::string(to_string(Reason::unknown)) == "unknown");
}

TEST_CASE("a sweep over eps has a shape for each reason", "[gradcheck]") {
  const Tensor x = leaf({0.4, 1.1, -2});
  const auto sweep = eps_sweep([](const Inputs& in) { return sin(in[0]) * in[0]; }, {x});
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
      read([](const Inputs& in) { return to(sin(to(in[0], DType::float32)), DType::float64); }, x),
      ContainsSubstring("float32 inside"));
  CHECK_THAT(read([](const Inputs& in) { return relu(in[0]); }, leaf({1, 3e-6, -2})),
             ContainsSubstring("a kink between 1e-06 and 1e-05"));
  CHECK_THAT(read([](const Inputs& in) { return relu(in[0]); }, leaf({1, 0, -2})),
             StartsWith("flat:"));
  CHECK_THAT(read(op(cube, [](const Tensor& g, const Tensor& v) { return g * v * v; }), x),
             StartsWith("flat:"));
  CHECK_THAT(read([](const Inputs& in) { return exp(in[0].detach()); }, x), !StartsWith("right"));
  CHECK_THAT(read([](const Inputs& in) { return log(in[0]); }, leaf({-1})),
             StartsWith("not finite"));
  CHECK_THROWS_WITH(eps_sweep([](const Inputs& in) { return in[0]; }, {ones({1}).requires_grad_()}),
                    ContainsSubstring("eps_sweep: input 0 is float32"));
  CHECK_THROWS_AS(EpsSweep().best(), ValueError);
}
