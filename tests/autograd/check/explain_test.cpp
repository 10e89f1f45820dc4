// explain_gradient() names the op whose backward is wrong.

#include <cmath>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/attention.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
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

TEST_CASE("explain_gradient: inputs of every kind", "[explain]") {
  const Tensor x = normal({2, 3}, 1).requires_grad_(), c = tensor({1, 2, 3}, DType::float64);
  const auto right = [](const auto& f, const Inputs& in) {
    const auto found = explain_gradient(f, in, {.second_order = true});
    INFO(to_string(found));
    CHECK(found);
  };
  // the same Tensor twice, and one input made of another
  right([](const Inputs& in) { return in[0] * in[0]; }, {x});
  right(
      [](const Inputs& in) {
        const Tensor y = exp(in[0]);
        return in[0] * y * y;
      },
      {x});
  // constants, undefined inputs, ops without a graph
  right([&](const Inputs& in) { return layer_norm(in[0], {3}, c) + exp(c); }, {x});
  // dropout, which draws
  right([](const Inputs& in) { return dropout(dropout(in[0], 0.5), 0.25); }, {x});
  // kinks: elements that are exactly 0, and ties
  const auto kink =
      explain_gradient([](const Inputs& in) { return relu(in[0]); }, {leaf({-1, 0, 2})});
  CHECK(kink);
  CHECK(kink.ops[0].unchecked == 1);
  CHECK_THAT(kink.message, ContainsSubstring("1 unchecked") && ContainsSubstring("a kink"));
  // scalars, and no elements
  right([](const Inputs& in) { return sum(in[0]); }, {leaf(2)});
  right([](const Inputs& in) { return in[0] * 2.0; },
        {zeros({0, 3}, DType::float64).requires_grad_()});
}

TEST_CASE("explain_gradient: a mask of -1e9 hides neither right nor wrong backwards", "[explain]") {
  const Tensor mask =
      tensor({{0.0, -1e9, -1e9}, {0.0, 0.0, -1e9}, {0.0, 0.0, 0.0}}, DType::float64);
  const auto masked = [&](double factor) {
    return [=](const Inputs& in) {
      return softmax(record(
                         "my_add", {in[0]}, [=](std::span<const Tensor> v) { return v[0] + mask; },
                         [=](Context& ctx) { ctx.add(0, ctx.gradient() * factor); }),
                     -1);
    };
  };
  const Tensor x = leaf({{0.3, -1, 2}, {0.5, 0.1, -2}, {1, 2, 3}});
  const auto right = explain_gradient(masked(1), {x}, {.second_order = true});
  INFO(right.message);
  CHECK_FALSE(right.first_wrong.has_value());
  const auto wrong = explain_gradient(masked(1.1), {x});
  REQUIRE(wrong.first_wrong.has_value());
  CHECK(wrong.ops[*wrong.first_wrong].op == "my_add");
  // at very large values there is no verdict, unless the gradient is far off
  const auto large = [](double factor) {
    return [=](const Inputs& in) {
      return record(
          "large", {in[0]}, [=](std::span<const Tensor> v) { return v[0] + 1e10; },
          [=](Context& ctx) { ctx.add(0, ctx.gradient() * factor); });
    };
  };
  const auto blind = explain_gradient(large(1), {x});
  CHECK_FALSE(blind.first_wrong.has_value());
  CHECK_THAT(blind.ops[0].message, ContainsSubstring("no digit is left"));
  CHECK(explain_gradient(large(1000), {x}).ops[0].verdict == Verdict::wrong);
  // next to large outputs, whose rounding could hide it
  const auto scaled = [](double factor) {
    return [=](const Inputs& in) {
      const auto sizes = [](double second) { return tensor({1.0, second, -2.0}, DType::float64); };
      return record(
          "my_mul", {in[0]}, [=](std::span<const Tensor> v) { return v[0] * sizes(1e10); },
          [=](Context& ctx) { ctx.add(0, ctx.gradient() * sizes(factor * 1e10)); });
    };
  };
  CHECK(explain_gradient(scaled(1), {x}, {.second_order = true}).ops[0].verdict == Verdict::right);
  CHECK(explain_gradient(scaled(1.02), {x}).ops[0].verdict == Verdict::wrong);
  // seconds since 1970: rounding changes the step, or removes it
  const auto hours = [](double first) {
    return explain_gradient([first](const Inputs& in) { return sum((in[0] - first) / 3600.0); },
                            {leaf({first + 1.25, first + 7.5, first + 3601})},
                            {.second_order = true});
  };
  CHECK_FALSE(hours(1.7e9).first_wrong.has_value());
  const auto still = hours(1e13);
  CHECK_FALSE(still.first_wrong.has_value());
}

TEST_CASE("explain_gradient: the numbers that dropout draws are not lost", "[explain]") {
  const std::string before = default_generator().state();
  explain_gradient([](const Inputs& in) { return dropout(in[0], 0.5); }, {leaf({1, 2, 3})});
  CHECK(default_generator().state() == before);
}

TEST_CASE("explain_gradient: a reading of its own under create_graph, and second derivatives",
          "[explain]") {
  const Tensor x = leaf({1, -2});
  // treats its input as a constant; under create_graph, on request, with a wrong factor
  const auto cube = [](bool recorded_wrong) {
    return [=](const Inputs& in) {
      return record(
          "cube", {exp(in[0])}, [](std::span<const Tensor> v) { return v[0] * v[0] * v[0]; },
          [=, value = Saved(exp(in[0]).detach())](Context& ctx) {
            const Tensor a = value.tensor();
            const double factor = recorded_wrong && ctx.create_graph() ? 2 : 3;
            ctx.add(0, ctx.gradient() * a * a * factor);
          });
    };
  };
  const auto recorded = explain_gradient(cube(true), {x});
  REQUIRE(recorded.first_wrong.has_value());
  CHECK_THAT(recorded.message, StartsWith("op 3 of 3, cube: its backward under create_graph"));
  const auto constant = cube(false);
  CHECK(explain_gradient(constant, {x}));
  const auto second = explain_gradient(constant, {x}, {.second_order = true});
  REQUIRE(second.first_wrong.has_value());
  CHECK_THAT(second.message, StartsWith("op 3 of 3, cube: the gradient of its gradient is wrong"));
}

TEST_CASE("explain_gradient: backwards that throw, or add nothing", "[explain]") {
  const Tensor x = leaf({{1, 2, 3}, {4, 5, 6}});
  const auto with = [&](const std::function<void(Context&)>& backward) {
    return explain_gradient(
        [&](const Inputs& in) {
          return record(
              "odd", {exp(in[0])}, [](std::span<const Tensor> v) { return v[0] * 2.0; }, backward);
        },
        {x});
  };
  const auto shape = with([](Context& ctx) { ctx.add(0, sum(ctx.gradient(), {0})); });
  CHECK_THAT(shape.message,
             StartsWith("op 2 of 2, odd: its backward throws: odd: gradient 0 has shape (3,)"));
  const auto none = with([](Context&) {});
  CHECK_THAT(none.message, StartsWith("op 2 of 2, odd: its backward is wrong"));
  CHECK_THAT(none.message, ContainsSubstring("it adds no gradient for input 0"));
  const auto nan = with([](Context& ctx) { ctx.add(0, log(ctx.gradient() * 0.0 - 1.0)); });
  CHECK_THAT(nan.message, StartsWith("op 2 of 2, odd: its backward is wrong"));

  int calls = 0;
  const auto counting = [&](const Inputs& in) {
    return record(
        "impure", {in[0]}, [&](std::span<const Tensor> v) { return v[0] * double(++calls); },
        [](Context& ctx) { ctx.add(0, ctx.gradient()); });
  };
  CHECK_THAT(explain_gradient(counting, {x}).message,
             StartsWith("the function is not deterministic: two calls on the same inputs gave 1 "
                        "and 2 at (0, 0)"));
  const auto impure = explain_gradient(
      [&](const Inputs& in) {
        calls = 0;
        return counting(in);
      },
      {x});
  CHECK_THAT(impure.message, StartsWith("op 1 of 1, impure: its forward, run again"));
}

TEST_CASE("explain_gradient: a graph that is cut", "[explain]") {
  const Tensor x = leaf({1, 2});
  const auto message = [&](const std::function<Tensor(const Tensor&)>& f) {
    const auto found = explain_gradient([&](const Inputs& in) { return f(in[0]); }, {x});
    CHECK_FALSE(found);
    CHECK_FALSE(found.first_wrong.has_value());
    CHECK_THAT(found.message, StartsWith("no op's own backward is wrong, but the whole is: "));
    return found.message;
  };
  CHECK_THAT(message([](const Tensor& a) { return a * exp(a).detach(); }),
             ContainsSubstring("the graph is cut before op 2, mul: its input 1 holds the result of "
                               "op 1, exp, but as a constant"));
  CHECK_THAT(message([](const Tensor& a) { return sin(a.detach()) + a; }),
             ContainsSubstring("cut before op 1, sin: its input 0 holds input 0 of the function"));
  CHECK_THAT(message([](const Tensor& a) {
               const Tensor e = exp(a);
               return a + tensor({e.data<double>()[0], e.data<double>()[1]}, DType::float64);
             }),
             ContainsSubstring("cut before op 2, add: its input 1 holds the result of op 1, exp"));
  CHECK_THAT(message([](const Tensor& a) {
               const NoGrad none;
               return exp(a);
             }),
             ContainsSubstring("the graph is cut at op 1, exp: it ran under NoGrad"));
  CHECK_THAT(message([](const Tensor& a) { return exp(a).detach(); }),
             ContainsSubstring("the graph is cut at the end: the result holds the result of "
                               "op 1, exp"));
  CHECK_THAT(message([](const Tensor& a) {
               Tensor y = exp(a);
               y.register_hook([](const Tensor& g) { return g * 2.0; });
               return sin(y);
             }),
             ContainsSubstring("op 1, exp: a hook on its output changes its gradient"));
}

TEST_CASE("explain_gradient: an op alone can be given to gradcheck", "[explain]") {
  const auto found = explain([](const Tensor& g) { return transpose(g, 0, 1); }, {});
  for (const OpCheck& op : found.ops) {
    INFO(op.number << " " << op.op);
    CHECK(gradcheck(op.alone, op.leaves).ok == (op.verdict == Verdict::right));
  }
  const Tensor x = leaf({1, 2});  // mul(x, x): one input
  const auto square = explain_gradient([](const Inputs& in) { return in[0] * in[0]; }, {x});
  CHECK(square.ops[0].leaves.size() == 1);
  CHECK(gradcheck(square.ops[0].alone, square.ops[0].leaves));
}

TEST_CASE("explain_gradient leaves nothing behind", "[explain]") {
  const Tensor x = leaf({1, 2});
  Tensor kept;
  explain_gradient(
      [&](const Inputs& in) {
        kept = exp(in[0]);
        return sin(kept);
      },
      {x}, {.second_order = true});
  CHECK_FALSE(x.grad().defined());
  CHECK(x.identity().node->hooks.empty());
  CHECK(kept.identity().node->hooks.empty());
  CHECK(Mode::current().observer == nullptr);
  CHECK_THROWS_AS(
      explain_gradient([](const Inputs& in) { return in[0]; }, {ones({2}).requires_grad_()}),
      DTypeError);
}

TEST_CASE("explain_gradient: a large op is checked at some of its elements", "[explain]") {
  const auto found = explain_gradient([](const Inputs& in) { return exp(in[0]); },
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
      [](const Inputs& in) { return to(exp(to(in[0], DType::float32)), DType::float64); },
      {leaf({1, 2})});
  CHECK(found);
  CHECK_THAT(found.message, ContainsSubstring("op 1, to, could not be checked: it computes in "
                                              "float32"));
}
