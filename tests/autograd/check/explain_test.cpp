// Each bug in the backward of an op of an attention layer: explain_gradient() names the op.

#include <cmath>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/nn/masks.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;
using Verdict = OpCheck::Verdict;

namespace {

// What may be wrong with it.
struct Bugs {
  bool softmax_term = false;   // the second term of softmax's derivative is dropped
  bool k_transposed = false;   // the gradient of k comes back transposed
  bool scale = false;          // the backward forgets 1 / sqrt(d)
  bool mask = false;           // the backward forgets the mask
  bool bias_averaged = false;  // the gradient of a bias is averaged, not summed
  bool head_order = false;     // the gradient of the heads is put back in another order
};

Tensor my_softmax(const Tensor& x, const Bugs& bugs) {
  return record(
      "my_softmax", {x}, [](std::span<const Tensor> in) { return softmax(in[0], -1); },
      [bug = bugs.softmax_term](Context& ctx) {
        const Tensor g = ctx.gradient(), y = ctx.output();
        ctx.add(0, bug ? y * g : y * (g - sum(y * g, {-1}, true)));
      },
      {.saves_output = true});
}

Tensor my_scores(const Tensor& q, const Tensor& k, const Bugs& bugs) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  return record(
      "my_scores", {q, k},
      [scale](std::span<const Tensor> in) {
        return matmul(in[0], transpose(in[1], -2, -1)) * scale;
      },
      [q = Saved(q), k = Saved(k), factor = bugs.scale ? 1 : scale,
       bug = bugs.k_transposed](Context& ctx) {
        const Tensor g = ctx.gradient() * factor;
        const Tensor gk = matmul(transpose(g, -2, -1), q.tensor());
        ctx.add(0, matmul(g, k.tensor()));
        ctx.add(1, bug ? transpose(gk, -2, -1) : gk);
      });
}

Tensor my_mask(const Tensor& x, const Bugs& bugs) {
  const Mask hidden = nn::future(x.size(-2), x.size(-1));
  return record(
      "my_mask", {x},
      [hidden](std::span<const Tensor> in) { return masked_fill(in[0], hidden, -inf); },
      [hidden, bug = bugs.mask](Context& ctx) {
        ctx.add(0, bug ? ctx.gradient() : masked_fill(ctx.gradient(), hidden, 0));
      });
}

Tensor my_bias(const Tensor& x, const Tensor& b, const Bugs& bugs) {
  return record(
      "my_bias", {x, b}, [](std::span<const Tensor> in) { return in[0] + in[1]; },
      [bug = bugs.bias_averaged](Context& ctx) {
        ctx.add(0, ctx.gradient());
        ctx.add(1, bug ? mean(ctx.gradient(), {0, 1}) : sum(ctx.gradient(), {0, 1}));
      });
}

// (B, H, T, D) -> (B, T, H * D)
Tensor my_merge(const Tensor& x, const Bugs& bugs) {
  const Shape from = x.shape();
  const Dims merged{from[0], from[2], from[1] * from[3]};
  const Dims apart{from[0], from[2], from[1], from[3]};
  return record(
      "my_merge", {x},
      [merged](std::span<const Tensor> in) {
        return reshape(permute(in[0], {0, 2, 1, 3}), merged);
      },
      [from, apart, bug = bugs.head_order](Context& ctx) {
        const Tensor g = ctx.gradient();
        ctx.add(0, bug ? reshape(g, Dims(from)) : permute(reshape(g, apart), {0, 2, 1, 3}));
      });
}

// x (B, T, C), weight (3C, C), bias (C,) -> (B, T, C); two heads, each of D = T so that a
// transposed gradient has a shape that fits.
Tensor attention(const Inputs& in, const Bugs& bugs) {
  const Scope scope("attn");
  const std::size_t B = in[0].size(0), T = in[0].size(1), C = in[0].size(2);
  const auto parts = chunk(linear(in[0], in[1]), 3, -1);
  const auto heads = [&](const Tensor& x) {
    return permute(reshape(x, {B, T, std::size_t{2}, C / 2}), {0, 2, 1, 3});
  };
  const Tensor scores = my_scores(heads(parts[0]), heads(parts[1]), bugs);
  const Tensor weights = my_softmax(my_mask(scores, bugs), bugs);
  return my_bias(my_merge(matmul(weights, heads(parts[2])), bugs), in[2], bugs);
}

Inputs attention_inputs() {
  return {normal({2, 3, 6}, 1).requires_grad_(), normal({18, 6}, 2).requires_grad_(),
          normal({6}, 3).requires_grad_()};
}

GradientExplanation explain(const Bugs& bugs, const ExplainOptions& options = {}) {
  return explain_gradient([&](const Inputs& in) { return attention(in, bugs); }, attention_inputs(),
                          options);
}

}  // namespace

TEST_CASE("explain_gradient: an attention that is right", "[explain]") {
  const auto found = explain({}, {.second_order = true});
  INFO(to_string(found));
  CHECK(found);
  CHECK_FALSE(found.first_wrong.has_value());
  CHECK(found.ops.size() == 16);
  for (const OpCheck& op : found.ops) {
    CHECK(op.verdict == Verdict::right);
    CHECK(op.scope == "attn");
    CHECK(op.checked > 0);
    CHECK(op.worst_error < 1e-5);
  }
  CHECK_THAT(found.message, ContainsSubstring("the backward of each of the 16 ops is right"));
}

TEST_CASE("explain_gradient names the op with the planted bug", "[explain]") {
  const auto named = [](const Bugs& bugs, const std::string& op, std::size_t input,
                        const std::string& fragment) {
    const auto found = explain(bugs);
    INFO(to_string(found));
    CHECK_FALSE(found);
    // softmax gives nothing back to what is masked, so there a wrong gradient does no harm
    CHECK(found.whole.ok == bugs.mask);
    REQUIRE(found.first_wrong.has_value());
    const OpCheck& check = found.ops[*found.first_wrong];
    CHECK(check.op == op);
    CHECK(check.input == input);
    CHECK(check.number == *found.first_wrong + 1);
    CHECK(std::abs(check.analytic - check.numeric) > 1e-3);
    CHECK(std::ranges::count(found.ops, Verdict::wrong, &OpCheck::verdict) == 1);
    CHECK_THAT(found.message,
               StartsWith("op " + std::to_string(check.number) + " of 16, " + op +
                          " in attn: its backward is wrong: d / d input " + std::to_string(input)));
    CHECK_THAT(found.message, ContainsSubstring(fragment));
  };
  named({.softmax_term = true}, "my_softmax", 0, "analytic");
  named({.k_transposed = true}, "my_scores", 1, "the analytic one is the other transposed");
  named({.scale = true}, "my_scores", 1, "the analytic one is 1.73205 (√3) times the other");
  named({.mask = true}, "my_mask", 0, "numeric 0;");
  named({.bias_averaged = true}, "my_bias", 1, "0.166667 (1/6 = 1/√36) times the other");
  named({.head_order = true}, "my_merge", 0, "the same numbers in another order");
}

TEST_CASE("explain_gradient: of two wrong ops the first is named", "[explain]") {
  const auto found = explain({.mask = true, .bias_averaged = true});
  REQUIRE(found.first_wrong.has_value());
  CHECK(found.ops[*found.first_wrong].op == "my_mask");
  CHECK(std::ranges::count(found.ops, Verdict::wrong, &OpCheck::verdict) == 2);
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
  // where all is so large, nothing can be said, unless it is wrong by far
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
  // large outputs beside others, which would be their rounding
  const auto beside = [](double factor) {
    return [=](const Inputs& in) {
      const auto sizes = [](double second) { return tensor({1.0, second, -2.0}, DType::float64); };
      return record(
          "my_mul", {in[0]}, [=](std::span<const Tensor> v) { return v[0] * sizes(1e10); },
          [=](Context& ctx) { ctx.add(0, ctx.gradient() * sizes(factor * 1e10)); });
    };
  };
  CHECK(explain_gradient(beside(1), {x}, {.second_order = true}).ops[0].verdict == Verdict::right);
  CHECK(explain_gradient(beside(1.02), {x}).ops[0].verdict == Verdict::wrong);
  // seconds since 1970: a step moves them by more than it says, or not at all
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
  // treats its input as a constant; under create_graph, if asked to, with a wrong factor
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
             ContainsSubstring("the graph is cut at the end: what is returned holds the result of "
                               "op 1, exp"));
  CHECK_THAT(message([](const Tensor& a) {
               Tensor y = exp(a);
               y.register_hook([](const Tensor& g) { return g * 2.0; });
               return sin(y);
             }),
             ContainsSubstring("op 1, exp: a hook on its output changes the gradient"));
}

TEST_CASE("explain_gradient: an op alone can be given to gradcheck", "[explain]") {
  const auto found = explain({.k_transposed = true, .mask = true});
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
  CHECK(x.impl().node->hooks.empty());
  CHECK(kept.impl().node->hooks.empty());
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
}

TEST_CASE("explain_gradient: float32 in the middle is told about", "[explain]") {
  const auto found = explain_gradient(
      [](const Inputs& in) { return to(exp(to(in[0], DType::float32)), DType::float64); },
      {leaf({1, 2})});
  CHECK(found);
  CHECK_THAT(found.message, ContainsSubstring("op 1, to, could not be checked: it computes in "
                                              "float32"));
}
