// explain_gradient() names the op whose backward is wrong.

#include <cmath>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/attention.hpp>

#include "autograd/check/verdict_cases.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using namespace xgrad::testing;
using Inputs = std::vector<Tensor>;
using Verdict = OpCheck::Verdict;

namespace {

// An op of two inputs; `change` alters the second's gradient.
Tensor product(const Tensor& a, const Tensor& b,
               const std::function<Tensor(const Tensor&)>& change = {}) {
  return record(
      "product", {a, b}, [](std::span<const Tensor> in) { return matmul(in[0], in[1]); },
      [a = Saved(a), b = Saved(b), change](Context& ctx) {
        const Tensor g = ctx.gradient(), gb = matmul(transpose(a.tensor(), 0, 1), g);
        ctx.add(0, matmul(g, transpose(b.tensor(), 0, 1)));
        ctx.add(1, change ? change(gb) : gb);
      });
}

GradientExplanation explain(const std::function<Tensor(const Tensor&)>& first,
                            const std::function<Tensor(const Tensor&)>& second) {
  return explain_gradient(
      [&](const Inputs& in) {
        const Scope scope("attn");
        const Tensor scores = product(in[0], sin(in[1]), first);
        return product(in[0], softmax(scores, -1), second);
      },
      {normal({4, 4}, 1).requires_grad_(), normal({4, 4}, 2).requires_grad_()});
}

}  // namespace

TEST_CASE("explain_gradient names the first wrong op and how its gradient differs", "[explain]") {
  const auto right = explain({}, {});
  CHECK(right);
  CHECK_FALSE(right.first_wrong.has_value());
  CHECK_THAT(right.message, ContainsSubstring("the backward of each of the 4 ops is right"));
  const auto third = [](const Tensor& g) { return g / std::sqrt(3); };
  const std::pair<std::function<Tensor(const Tensor&)>, std::string> wrong[] = {
      {[](const Tensor& g) { return transpose(g, 0, 1); },
       "the analytic one is the other transposed"},
      {third, "the analytic one is 0.57735 (1/√3) times the other"},
      {[](const Tensor& g) { return flip(g, {0}); }, "the same numbers in another order"}};
  for (const auto& [change, how] : wrong) {
    const auto found = explain(change, third);
    INFO(to_string(found));
    CHECK_FALSE(found);
    REQUIRE(found.first_wrong == 1U);
    CHECK(std::ranges::count(found.ops, Verdict::wrong, &OpCheck::verdict) == 2);
    CHECK(std::ranges::count(found.ops, "attn", &OpCheck::scope) == 4);
    CHECK(found.ops[1].input == 1);
    CHECK_THAT(found.message, StartsWith("op 2 of 4, product in attn: its backward is wrong: d / d "
                                         "input 1") &&
                                  ContainsSubstring(how));
  }
}

TEST_CASE("explain_gradient names a wrong op that does no harm", "[explain]") {
  const auto found = explain_gradient(
      [](const Inputs& in) {  // a masked score gets no gradient from softmax
        const Mask hidden = nn::future(3, 3);
        return softmax(
            record(
                "mask", {in[0]},
                [hidden](std::span<const Tensor> v) { return masked_fill(v[0], hidden, -inf); },
                [](Context& ctx) { ctx.add(0, ctx.gradient()); }),
            -1);
      },
      {normal({3, 3}, 1).requires_grad_()});
  CHECK(found.whole);
  CHECK(found.first_wrong == 0U);
  CHECK_THAT(found.message, ContainsSubstring("numeric 0;"));
}

TEST_CASE("explain_gradient: kinks are unchecked, and an empty input is right", "[explain]") {
  const auto kink = explain_gradient([](const Tensor& a) { return relu(a); }, {leaf({-1, 0, 2})});
  CHECK(kink);
  CHECK(kink.ops[0].unchecked == 1);
  CHECK_THAT(kink.message, ContainsSubstring("1 unchecked") && ContainsSubstring("a kink"));
  CHECK(explain_gradient([](const Tensor& a) { return a * 2.0; },
                         {zeros({0, 3}, DType::float64).requires_grad_()}));
}

TEST_CASE("explain_gradient: at very large values there is no verdict, unless it is far off",
          "[explain]") {
  const auto large = [](double factor) {
    return explain_gradient(one_op([](const Tensor& v) { return v + 1e10; },
                                   [factor](const Tensor& g, const Tensor&) { return g * factor; }),
                            {leaf({{0.3, -1, 2}, {0.5, 0.1, -2}, {1, 2, 3}})});
  };
  const auto blind = large(1);
  CHECK_FALSE(blind.first_wrong.has_value());
  CHECK_THAT(blind.ops[0].message, ContainsSubstring("no digit is left"));
  CHECK(large(1000).ops[0].verdict == Verdict::wrong);
}

TEST_CASE("explain_gradient: the numbers that dropout draws are not lost", "[explain]") {
  const std::string before = default_generator().state();
  explain_gradient([](const Tensor& a) { return dropout(a, 0.5); }, {leaf({1, 2, 3})});
  CHECK(default_generator().state() == before);
}

TEST_CASE("explain_gradient: a forward that gives another result, run again", "[explain]") {
  int calls = 0;
  const auto impure = explain_gradient(
      [&](const Inputs& in) {
        calls = 0;
        return record(
            "impure", {in[0]}, [&](std::span<const Tensor> v) { return v[0] * double(++calls); },
            [](Context& ctx) { ctx.add(0, ctx.gradient()); });
      },
      {leaf({{1, 2, 3}, {4, 5, 6}})});
  CHECK_THAT(impure.message, StartsWith("op 1 of 1, impure: its forward, run again"));
}

TEST_CASE("explain_gradient: an op alone can be given to gradcheck", "[explain]") {
  const auto found = explain([](const Tensor& g) { return transpose(g, 0, 1); }, {});
  for (const OpCheck& op : found.ops) {
    INFO(op.number << " " << op.op);
    CHECK(gradcheck(op.alone, op.leaves).ok == (op.verdict == Verdict::right));
  }
  const Tensor x = leaf({1, 2});  // mul(x, x): one input
  const auto square = explain_gradient([](const Tensor& a) { return a * a; }, {x});
  CHECK(square.ops[0].leaves.size() == 1);
  CHECK(gradcheck(square.ops[0].alone, square.ops[0].leaves));
}

TEST_CASE("explain_gradient leaves nothing behind", "[explain]") {
  const Tensor x = leaf({1, 2});
  Tensor kept;
  explain_gradient(
      [&](const Tensor& a) {
        kept = exp(a);
        return sin(kept);
      },
      {x}, {.second_order = true});
  CHECK_FALSE(x.grad().defined());
  CHECK(x.identity().node->hooks.empty());
  CHECK(kept.identity().node->hooks.empty());
  CHECK(Mode::current().observer == nullptr);
  CHECK_THROWS_AS(explain_gradient([](const Tensor& a) { return a; }, {ones({2}).requires_grad_()}),
                  DTypeError);
}

TEST_CASE("explain_gradient: a large op is checked at some of its elements", "[explain]") {
  const auto found = explain_gradient([](const Tensor& a) { return exp(a); },
                                      {normal({7, 10}, 1).requires_grad_()}, {.max_elements = 20});
  CHECK(found);
  CHECK(found.ops[0].checked == 20);
  // A mistake beyond a large sample is found, too.
  const auto forgets_one = [](const Inputs& in) {
    return record(
        "forgets_one", {in[0]}, [](std::span<const Tensor> v) { return v[0] * 2.0; },
        [](Context& ctx) {
          Tensor g = (ctx.gradient() * 2.0).clone();
          set_element(g, 101, 0);
          ctx.add(0, g);
        });
  };
  const auto wrong =
      explain_gradient(forgets_one, {normal({200}, 1).requires_grad_()}, {.max_elements = 100});
  REQUIRE(wrong.first_wrong.has_value());
  CHECK(wrong.ops[0].index == std::vector<std::size_t>{101});
}

TEST_CASE("explain_gradient: float32 in the middle is told about", "[explain]") {
  const auto found = explain_gradient(
      [](const Tensor& a) { return to(exp(to(a, DType::float32)), DType::float64); },
      {leaf({1, 2})});
  CHECK(found);
  CHECK_THAT(found.message, ContainsSubstring("op 1, to, could not be checked: it computes in "
                                              "float32"));
}
