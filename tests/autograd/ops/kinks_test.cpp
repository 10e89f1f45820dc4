// Gradients at the points where an op is not smooth, as ops.hpp states them.  samples_test.cpp
// checks all other points.

#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

// The gradient of sum(f(x)), the ordinary one and that under create_graph, in both dtypes.
template <class F>
void check_gradient(const char* what, const Values& x, const F& f, const Values& expected) {
  for (const DType dtype : {DType::float64, DType::float32})
    for (const bool create_graph : {false, true}) {
      INFO(what << ", " << to_string(dtype) << (create_graph ? ", create_graph" : ""));
      const Tensor leaf = tensor(x, dtype).requires_grad_(), want = tensor(expected, dtype);
      const Tensor g = grad({sum(f(leaf))}, {leaf}, {.create_graph = create_graph})[0];
      REQUIRE(g.shape() == want.shape());
      INFO(to_string(g));
      CHECK(all((g == want) | (~(g == g) & ~(want == want))));  // NaN counts as equal
    }
}

}  // namespace

TEST_CASE("gradients at kinks and poles: elementwise", "[ops][kinks]") {
  const Values around = {-2, 0, 3};
  check_gradient("abs", around, [](const Tensor& x) { return abs(x); }, {-1, 0, 1});
  check_gradient("relu", around, [](const Tensor& x) { return relu(x); }, {0, 0, 1});
  check_gradient("clamp", {-2, -1, 0, 1, 2}, [](const Tensor& x) { return clamp(x, -1, 1); },
                 {0, 0, 1, 0, 0});
  check_gradient("clamp from below", {-inf, 0, 1, inf},
                 [](const Tensor& x) { return clamp(x, 0, {}); }, {0, 0, 1, 1});
  check_gradient("clamp from above", {-inf, -1, 0, inf},
                 [](const Tensor& x) { return clamp(x, {}, 0); }, {1, 1, 0, 0});
  check_gradient("maximum", around, [](const Tensor& x) { return maximum(x, zeros_like(x)); },
                 {0, 0.5, 1});
  check_gradient("minimum", around, [](const Tensor& x) { return minimum(zeros_like(x), x); },
                 {1, 0.5, 0});
  // with a NaN both operands get all of the gradient
  const double nan = not_a_number;
  const Values left = {1, nan, nan, inf, inf, -inf, inf},
               right = {nan, 1, nan, inf, -inf, -inf, nan};
  for (const bool first : {true, false}) {
    const auto pair = [&](Tensor (*op)(const Tensor&, const Tensor&)) {
      return [=](const Tensor& x) {
        return first ? op(x, tensor(right, x.dtype())) : op(tensor(left, x.dtype()), x);
      };
    };
    check_gradient("maximum", first ? left : right, pair(maximum),
                   {1, 1, 1, 0.5, first ? 1. : 0., 0.5, 1});
    check_gradient("minimum", first ? left : right, pair(minimum),
                   {1, 1, 1, 0.5, first ? 0. : 1., 0.5, 1});
  }
  // of clamp(x, min, max) for Tensors: to min if x < min <= max, to max if x > max or min > max,
  // and at a tie half to each of two
  const Tensor low = tensor({2, 2, 2, 0, 6, 3}, DType::float64),
               high = tensor({2, 4, 4, 3, 4, 2}, DType::float64);
  const auto same = [](const Tensor& a, const Tensor& like) { return to(a, like.dtype()); };
  const Values between = {1, 1, 2, 3, 5, 2.5};
  check_gradient("clamp in x", between,
                 [&](const Tensor& x) { return clamp(x, same(low, x), same(high, x)); },
                 {0, 0, 0.5, 0.5, 0, 0});
  check_gradient(
      "clamp in min", {2, 2, 2, 0, 6, 3},
      [&](const Tensor& min) { return clamp(tensor(between, min.dtype()), min, same(high, min)); },
      {1, 1, 0.5, 0, 0, 0});
  check_gradient(
      "clamp in max", {2, 4, 4, 3, 4, 2},
      [&](const Tensor& max) { return clamp(tensor(between, max.dtype()), same(low, max), max); },
      {0, 0, 0, 0.5, 1, 1});
  for (const RoundingMode mode : {RoundingMode::trunc, RoundingMode::floor}) {
    check_gradient("div rounded", around, [&](const Tensor& x) { return div(x, x + 5.0, mode); },
                   {0, 0, 0});
    check_gradient("div rounded, at a pole", {0, 4},
                   [&](const Tensor& x) { return div(ones_like(x), x, mode); }, {0, 0});
  }
  const Mask chosen = {true, false, true};
  check_gradient("where", around, [&](const Tensor& x) { return where(chosen, x, 7); }, {1, 0, 1});
  check_gradient("masked_fill", around,
                 [&](const Tensor& x) { return masked_fill(x, chosen, inf); }, {0, 1, 0});
  for (Tensor (*const steps)(const Tensor&) : {sign, floor, ceil, round})
    check_gradient("steps", {-2, -0.5, 0, 0.25, 1, not_a_number}, steps, {0, 0, 0, 0, 0, 0});
  check_gradient("hardsigmoid", {-3, 0, 3}, hardsigmoid, {0, 1. / 6, 0});
  check_gradient("reciprocal", {0, 2}, reciprocal, {-inf, -0.25});
  check_gradient("logaddexp", {inf, 0, -inf},
                 [](const Tensor& x) { return logaddexp(x, full(3, inf, x.dtype())); },
                 {not_a_number, 0, 0});
  check_gradient("maximum with a number", around, [](const Tensor& x) { return maximum(x, 0); },
                 {0, 0.5, 1});
  check_gradient("l1_loss", around,
                 [](const Tensor& x) { return l1_loss(x, zeros_like(x), Reduction::sum); },
                 {-1, 0, 1});
  check_gradient("kl_div in a target of 0", {0, 1},
                 [](const Tensor& t) { return kl_div(full_like(t, -2), t, {Reduction::sum}); },
                 {2, 3});
  check_gradient("sqrt", {0, 4}, [](const Tensor& x) { return sqrt(x); }, {inf, 0.25});
  check_gradient("rsqrt", {0, 4}, [](const Tensor& x) { return rsqrt(x); }, {-inf, -0.0625});
  check_gradient("log", {0, 4}, [](const Tensor& x) { return log(x); }, {inf, 0.25});
  check_gradient("div", {0, 2}, [](const Tensor& x) { return 1.0 / x; }, {-inf, -0.25});
  const std::vector<std::pair<double, double>> at_zero = {{2, 0}, {1, 1}, {0.5, inf}, {0, 0}};
  for (const auto& [e, expected] : at_zero) {
    INFO("exponent " << e);
    check_gradient("pow", {0}, [e = e](const Tensor& x) { return pow(x, e); }, {expected});
  }
  check_gradient("exponent of 0", {0, 1}, [](const Tensor& e) { return pow(0.0, e); }, {0, 0});
}

// PyTorch 2.15's rule: an op that chooses by comparison passes the gradient at NaN.
TEST_CASE("gradients of ops with kinks at NaN and at infinity", "[ops][kinks]") {
  constexpr double nan = not_a_number;
  const Values ends = {nan, inf, -inf};
  check_gradient("relu", ends, [](const Tensor& x) { return relu(x); }, {1, 1, 0});
  check_gradient("abs", ends, [](const Tensor& x) { return abs(x); }, {0, 1, -1});
  check_gradient("elu", ends, [](const Tensor& x) { return elu(x); }, {1, 1, 0});
  check_gradient("leaky_relu", ends, [](const Tensor& x) { return leaky_relu(x, 0.5); },
                 {0.5, 1, 0.5});
  check_gradient("hardtanh", ends, [](const Tensor& x) { return hardtanh(x); }, {1, 0, 0});
  check_gradient("softplus", ends, [](const Tensor& x) { return softplus(x); }, {nan, 1, 0});
  check_gradient("clamp", ends, [](const Tensor& x) { return clamp(x, -1, 1); }, {0, 0, 0});
  const Values other = {1, nan, nan, -inf};
  const auto like = [&](const Tensor& x) { return tensor(other, x.dtype()); };
  check_gradient("clamp, a Tensor below", {nan, 1, nan, -inf},
                 [&](const Tensor& x) { return clamp(x, like(x), Tensor()); }, {1, 1, 1, 0.5});
  // x, min and max, one of them NaN: to x, unless x is beyond the other bound
  const Values x = {nan, 0, 0, 2, 2}, low = {0, nan, 1, nan, 1}, high = {1, 1, nan, 1, nan};
  const auto in = [](const Values& v, const Tensor& a) { return tensor(v, a.dtype()); };
  check_gradient("x", x, [&](const Tensor& a) { return clamp(a, in(low, a), in(high, a)); },
                 {1, 1, 0, 0, 1});
  check_gradient("min", low, [&](const Tensor& a) { return clamp(in(x, a), a, in(high, a)); },
                 {0, 0, 0, 0, 0});
  check_gradient("max", high, [&](const Tensor& a) { return clamp(in(x, a), in(low, a), a); },
                 {0, 0, 0, 0, 0});
}

TEST_CASE("gradients at kinks and poles: along dimensions", "[ops][kinks]") {
  const Values ties = {{3, 1, 3, 2}, {0, 0, 0, 0}};
  const Values shared = {{0.5, 0, 0.5, 0}, {0.25, 0.25, 0.25, 0.25}};
  check_gradient(
      "amax", ties, [](const Tensor& x) { return amax(x, {1}); }, shared);
  check_gradient("amin", ties, [](const Tensor& x) { return amin(-x, {1}); },
                 {{-0.5, 0, -0.5, 0}, {-0.25, -0.25, -0.25, -0.25}});
  check_gradient("max", {1, 3, 3}, [](const Tensor& x) { return max(x); }, {0, 0.5, 0.5});
  check_gradient("max along a dimension", ties, [](const Tensor& x) { return max(x, 1).values; },
                 {{1, 0, 0, 0}, {1, 0, 0, 0}});
  check_gradient("topk", ties, [](const Tensor& x) { return topk(x, 1).values; },
                 {{1, 0, 0, 0}, {1, 0, 0, 0}});
  check_gradient("prod", {{2, 0, 3}, {0, 0, 5}}, [](const Tensor& x) { return prod(x, 1); },
                 {{0, 6, 0}, {0, 0, 0}});
  check_gradient("std", {2, 2, 2}, [](const Tensor& x) { return xgrad::std(x); }, {0, 0, 0});
  for (const double ord : {0.0, 1.0, 2.0, 3.0, inf, -inf}) {
    INFO("ord " << ord);
    check_gradient("norm of zeros", {0, 0}, [ord](const Tensor& x) { return vector_norm(x, ord); },
                   {0, 0});
  }
  check_gradient("norm 1", {0, -2}, [](const Tensor& x) { return vector_norm(x, 1); }, {0, -1});
  check_gradient("norm inf", {2, -2, 1}, [](const Tensor& x) { return vector_norm(x, inf); },
                 {0.5, -0.5, 0});
  check_gradient("norm 0", {2, 0}, [](const Tensor& x) { return vector_norm(x, 0); }, {0, 0});
  check_gradient("logsumexp", {-inf, -inf}, [](const Tensor& x) { return logsumexp(x, {0}); },
                 {0, 0});
  check_gradient("cumprod", {2, 0, 3}, [](const Tensor& x) { return cumprod(x, 0); }, {1, 8, 0});
  check_gradient("softmax", {-inf, -inf}, [](const Tensor& x) { return softmax(x, 0); }, {0, 0});
}
