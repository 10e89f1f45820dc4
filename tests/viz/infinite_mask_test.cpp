// An additive mask of -inf: no checker calls its infinities wrong.

#include <limits>
#include <xgrad/autograd/check/anomaly.hpp>
#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/viz/graph.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace {

using Masked = Tensor (*)(const Tensor&);

Tensor additive() { return triu(full({3, 3}, -inf, DType::float64), 1); }
Tensor hidden(const Tensor& scores) { return masked_fill(scores, nn::future(3, 3), -inf); }
Tensor triangle() { return tril(ones({3, 3}, DType::float64)); }
Tensor scores() { return leaf({{0.3, -1, 2}, {0.5, 0.1, -2}, {1, 2, 3}}); }

// Right ways to hide the future from scores (3, 3), before softmax.
std::vector<Masked> masks() {
  return {
      [](const Tensor& s) { return s + additive(); },
      [](const Tensor& s) { return s + log(triangle()); },
      [](const Tensor& s) { return s - masked_fill(zeros_like(s), nn::future(3, 3), inf); },
      [](const Tensor& s) { return hidden(s) / 2; },
      [](const Tensor& s) { return reshape(hidden(s), {1, 3, 3}); },
      [](const Tensor& s) { return cat({hidden(s), s}, 0); },
      [](const Tensor& s) { return hidden(s) - logsumexp(hidden(s), {-1}, true); },
  };
}

// An op that masks a corner, with a backward that does not.
Tensor forgetful(const Tensor& x, bool forgets) {
  const Mask corner = {{false, false, false}, {false, false, false}, {true, false, false}};
  return record(
      "my_mask", {x}, [=](std::span<const Tensor> v) { return masked_fill(v[0], corner, -inf); },
      [=](Context& ctx) {
        ctx.add(0, forgets ? ctx.gradient() : masked_fill(ctx.gradient(), corner, 0));
      });
}
Tensor my_add(const Tensor& x, double factor) {
  return record(
      "my_add", {x, additive()}, [](std::span<const Tensor> v) { return v[0] + v[1]; },
      [=](Context& ctx) { ctx.add(0, ctx.gradient() * factor); });
}

}  // namespace

TEST_CASE("explain_gradient: an op with -inf as input is not called wrong", "[infinite_mask]") {
  for (const Masked& masked : masks()) {
    const auto found =
        explain_gradient([&](const Inputs& in) { return softmax(masked(in[0] * 1.5), -1); },
                         {scores()}, {.second_order = true});
    INFO(to_string(found));
    CHECK(found.ok);
    for (const OpCheck& op : found.ops)
      if (!op.leaves.empty()) {
        INFO(op.op);
        CHECK(gradcheck(op.alone, op.leaves).ok);
      }
  }
  // A wrong backward next to it is still found, and so is one of an op that writes -inf itself.
  const auto by = [](double factor, bool forgets) {
    return explain_gradient(
        [=](const Inputs& in) { return softmax(forgetful(my_add(in[0], factor), forgets), -1); },
        {scores()});
  };
  CHECK(by(1, false).ok);
  const auto factor = by(1.1, false), forgets = by(1, true);
  REQUIRE(factor.first_wrong.has_value());
  CHECK(factor.ops[*factor.first_wrong].op == "my_add");
  REQUIRE(forgets.first_wrong.has_value());
  CHECK(forgets.ops[*forgets.first_wrong].op == "my_mask");
  // If nothing is left, nothing is reported.
  const auto none = explain_gradient(
      [](const Inputs& in) { return sum(exp(in[0] + full({3, 3}, -inf, DType::float64))); },
      {scores()});
  CHECK(none.ops[0].verdict == OpCheck::Verdict::unchecked);
}

TEST_CASE("gradcheck and gradgradcheck: outputs behind an additive -inf", "[infinite_mask]") {
  const auto outputs = [](const Inputs& in) {
    return reshape((in[0] * in[0] + additive()) * 2.0, {9});
  };
  for (const bool fast : {false, true}) {
    const auto first = gradcheck(outputs, {scores()}, {.fast_mode = fast});
    INFO(first.message);
    CHECK(first.ok);
    CHECK(gradgradcheck(outputs, {scores()}, {.fast_mode = fast}).ok);
    CHECK(gradcheck([](const Inputs& in) { return in[0] + in[1]; }, {scores(), additive()},
                    {.fast_mode = fast})
              .ok);
  }
  // A wrong gradient stays wrong anywhere.
  CHECK_FALSE(gradcheck([](const Inputs& in) { return my_add(in[0], 1.1); }, {scores()}));
  for (const bool forgets : {false, true})
    CHECK(gradcheck([=](const Inputs& in) { return reshape(forgetful(in[0], forgets), {9}); },
                    {scores()})
              .ok != forgets);
  CHECK_FALSE(
      gradcheck([](const Inputs& in) { return forgetful(in[0] + additive(), true); }, {scores()}));
}

TEST_CASE("compare, DetectAnomaly and the graph page under an additive -inf", "[infinite_mask]") {
  for (const Masked& masked : masks()) {
    const auto mine = [&](const Inputs& in) { return softmax(masked(in[0]), -1); };
    const auto same = [&](const Inputs& in) { return softmax(masked(in[0]) + 0.0, -1); };
    CHECK(compare(mine, same, {scores()}).ok);
    const Tensor x = scores();
    const auto page = viz::run_graph([&] { return sum(pow(mine({x * 1.5}), 2)); });
    CHECK(page.wrong().empty());
    const DetectAnomaly guard;
    CHECK_NOTHROW(sum(mine({scores()})).backward());
  }
  const auto reference = [](const Inputs& in) { return softmax(hidden(in[0]), -1); };
  CHECK(compare([](const Inputs& in) { return softmax(in[0] + additive(), -1); }, reference,
                {scores()})
            .ok);
  // An infinity that reaches a loss is still an anomaly.
  const DetectAnomaly guard;
  CHECK_THROWS_AS(sum(log(leaf({0.0, 1.0}))), AnomalyError);
  CHECK_THROWS_AS(exp(tensor({1000.0, 1.0})), AnomalyError);
  const NoGrad off;
  CHECK_NOTHROW(log(tensor({0.0, 1.0})));  // a mask, as in scores + log(mask)
  CHECK_THROWS_AS(sum(log(tensor({0.0, 0.5}))), AnomalyError);
}
