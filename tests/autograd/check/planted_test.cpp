// The table of planted mistakes: a function, and the verdict of each checker.

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/nn/attention.hpp>
#include <xgrad/nn/check.hpp>

#include "autograd/check/verdict_cases.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using namespace xgrad::testing;
using Inputs = std::vector<Tensor>;
using Reason = GradcheckReason;

namespace {

// Parts of a message; a part that begins with ! must be absent.
using Parts = std::vector<std::string>;

// The checkers that cannot see a mistake: gradcheck in fast mode, eps_sweep.
struct Missed {
  bool fast = false, sweep = false;
};
struct Planted {
  std::string name;
  TensorFunction f;
  Inputs inputs;
  Reason reason;  // gradcheck gives it, in fast mode too, and says `says`
  Parts says;     // (gradgradcheck, if the first derivatives are right)
  // Parts of explain_gradient's message.  Without any, it must name the op "planted".
  Parts explained;
  Missed missed;
  int order;  // of the wrong derivatives
};
struct Table {
  std::vector<Planted> rows;
  void operator()(const std::string& name, const TensorFunction& f, const Inputs& inputs,
                  Reason reason, const Parts& says = {}, const Parts& explained = {},
                  Missed missed = {}, int order = 1) {
    rows.push_back({name, f, inputs, reason, says, explained, missed, order});
  }
};

void check_parts(const std::string& message, const Parts& parts) {
  INFO(message);
  for (const std::string& part : parts)
    if (part.starts_with('!'))
      CHECK_THAT(message, !ContainsSubstring(part.substr(1)));
    else
      CHECK_THAT(message, ContainsSubstring(part));
}

// A layer that computes a function of its inputs.
struct Layer {
  TensorFunction f;
  static void visit(auto&, auto&&) {}
};

Tensor random_leaf(const Dims& sizes) { return normal(sizes, 7).requires_grad_(); }
Tensor d64(const Values& values) { return tensor(values, DType::float64); }

const UnaryForward cube = [](const Tensor& x) { return x * x * x; };
const UnaryBackward cube_gradient = [](const Tensor& g, const Tensor& x) {
  return g * x * x * 3.0;
};

// x^3, whose gradient is multiplied by c.
TensorFunction cube_times(const Tensor& c) {
  return one_op(cube, [c](const Tensor& g, const Tensor& x) { return g * x * x * c * 3.0; });
}
TensorFunction cube_times(double c) { return cube_times(scalar(c, DType::float64)); }
// x * forward, whose derivative is said to be `backward`.
TensorFunction factors(const Tensor& forward, const Tensor& backward) {
  return one_op([=](const Tensor& x) { return x * forward; },
                [=](const Tensor& g, const Tensor&) { return g * backward; });
}
TensorFunction factors(double forward, double backward) {
  return factors(scalar(forward, DType::float64), scalar(backward, DType::float64));
}
// 2 x with this backward.
TensorFunction doubled_by(const std::function<void(Context&)>& backward) {
  return [=](const Inputs& in) {
    return record(
        "planted", {in[0]}, [](std::span<const Tensor> v) { return v[0] * 2.0; }, backward);
  };
}

void add_factors(Table& add) {
  const Tensor x = random_leaf({2, 8});
  const double root_8 = std::sqrt(8);
  const std::pair<double, Parts> wrong[] = {
      {2, {"analytic = 2 × numeric (dimension 0", "multiply the gradient by 1/2"}},
      {0.125, {"0.125 = 1/8 = 1/√64", "dimension 1 of input 0 is 8", "multiply the gradient by 8"}},
      {1 / root_8, {"= 1/√8", "dimension 1 of input 0 is 8", "by √8"}},
      {1.0 / 16, {"the number of elements of input 0 is 16"}},
      {8, {"8 × numeric; 8 = √64 (dimension 1 of output 0 is 8"}},
      {2.0 / 3, {"= 2/3:"}},
      {-2, {"analytic = -2 × numeric"}},
      {std::sqrt(2 / std::numbers::pi), {"= √(2/π)"}},
      {1.0 / 640, {"= 1/640"}},
      {0.7613, {"0.7613 × numeric: multiply the gradient by 1.31354"}}};
  for (const auto& [c, says] : wrong)
    add(fmt::format("{} times", c), cube_times(c), {x}, Reason::wrong_factor, says);
  add("half of some", cube_times(d64({1, 0.5, 1, 0.5})), {leaf({1, 2, 3, 4})}, Reason::wrong_factor,
      {"0.5 × numeric in those that disagree", "diagonal, 2 of 4"});
  add("negated", cube_times(-1), {random_leaf({3})}, Reason::wrong_sign);
  // Very large and very small numbers, whose steps have their own sizes.
  for (const double at : {1e-200, 1e-8, 1e8, 1e14, 1e30})
    add(fmt::format("4 for 3 at {}", at), factors(3, 4), {leaf({at})}, Reason::wrong_factor, {}, {},
        {.sweep = at == 1e14});
  add("4 for 3 at 1e14 and 1", factors(3, 4), {leaf({1e14, 1})}, Reason::transposed);
  for (const double c : {1e-14, 1e-20})
    add(fmt::format("2 for 1, of {}", c), factors(c, 2 * c), {leaf({1, -2})}, Reason::wrong_factor);
  add("twice the slope of log at 1e-10",
      one_op([](const Tensor& v) { return log(v); },
             [](const Tensor& g, const Tensor& v) { return g / v * 2.0; }),
      {leaf({1e-10, 1})}, Reason::wrong_factor);
  // Next to a large gradient, whose rounding could hide it.
  add("2 % next to 1e10", factors(d64({1, 1e10, -2}), d64({1, 1.02e10, -2})),
      {leaf({{0.3, -1, 2}, {0.5, 0.1, -2}})}, Reason::wrong_factor);
  add("3 times below 0, next to exp(30)",
      one_op([](const Tensor& v) { return exp(v); },
             [](const Tensor& g, const Tensor& v) {
               return g * where(v < 0.0, 3.0, ones_like(v)) * exp(v);
             }),
      {leaf({30, -1})}, Reason::wrong_factor, {}, {}, {.fast = true, .sweep = true});
}

void add_zeros(Table& add) {
  const Tensor x = random_leaf({3});
  const std::string cut = "no op's own backward is wrong, but the whole is: the graph is cut ";
  add("a constant", [](const Tensor& a) { return exp(a.detach()); }, {x}, Reason::absent,
      {"does not lead to input 0", "no graph leads from output 0"},
      {cut + "before op 1, exp: its input 0 holds input 0 of the function"});
  add("an input that is forgotten",
      [](const Inputs& in) {
        const Tensor y = exp(in[0]);
        return record(
            "planted", {in[1], y}, [](std::span<const Tensor> v) { return v[0] * v[1]; },
            [y = Saved(y)](Context& ctx) { ctx.add(0, ctx.gradient() * y.tensor()); });
      },
      {x, random_leaf({3})}, Reason::absent,
      {"no gradient of output 0 arrives at input 0: op 2, planted: ", "no gradient for input 1",
       "!detach"},
      {"op 2 of 2, planted: its backward is wrong", "it adds no gradient for input 1"});
  add("0", cube_times(0.0), {x}, Reason::absent, {"zero everywhere"});
  add("0 at one place", cube_times(d64({1, 0, 1})), {x}, Reason::absent,
      {"1 of 3 elements of input 0: (1)"});
  // A straight-through estimator: the value goes in steps, and the gradient passes.
  add("a slope where there is none",
      one_op([](const Tensor& v) { return where(v > zeros_like(v), ones_like(v), -1.0); },
             [](const Tensor& g, const Tensor&) { return g * 1.0; }),
      {x}, Reason::spurious);
  // Graphs that are cut.
  const std::string holds = " holds the result of op 1, exp";
  const std::tuple<const char*, Reason, Tensor (*)(const Tensor&), std::string> cuts[] = {
      {"a detached factor", Reason::unknown, [](const Tensor& a) { return a * exp(a).detach(); },
       cut + "before op 2, mul: its input 1" + holds + ", but as a constant"},
      {"a detached input", Reason::unknown, [](const Tensor& a) { return sin(a.detach()) + a; },
       cut + "before op 1, sin: its input 0 holds input 0 of the function"},
      {"copied numbers", Reason::unknown,
       [](const Tensor& a) {
         const Tensor e = exp(a);
         return a + Tensor(numbers(e));
       },
       cut + "before op 2, add: its input 1" + holds},
      {"NoGrad", Reason::absent,
       [](const Tensor& a) {
         const NoGrad none;
         return exp(a);
       },
       cut + "at op 1, exp: it ran under NoGrad"},
      {"a detached result", Reason::absent, [](const Tensor& a) { return exp(a).detach(); },
       cut + "at the end: the result" + holds}};
  for (const auto& [name, reason, f, explained] : cuts)
    add(name, [f = f](const Tensor& a) { return f(a); }, {leaf({0.5, 1})}, reason, {}, {explained});
  // Numbers that are read and used again.
  const std::tuple<const char*, TensorFunction, std::string> read[] = {
      {"an array",
       [](const Tensor& in) {
         return in * 2.0 + Tensor(xt::xarray<double>(xt::exp(in.array<double>())));
       },
       "input 1 of op 2, add"},
      {"a number", [](const Tensor& in) { return in / in.max().item(); }, "input 1 of op 2, div"},
      {"an exponent", [](const Tensor& in) { return exp(in).pow(1 + in.sum().item()); },
       "op 3, pow"},
      {"a loop",
       [](const Tensor& in) {
         Tensor scores = in.clone();
         for (int i = 0; i < 2; ++i)
           scores = scores + full({2, 2}, in[i].sum().item(), DType::float64);
         return scores;
       },
       "input 1 of op 4, add"}};
  for (const auto& [name, f, at] : read) {
    const std::string moves = "moves with the function's inputs";
    add(std::string("read again: ") + name, f, {leaf({{0.3, -0.2}, {0.1, 0.4}})}, Reason::unknown,
        {at, moves + ", but no graph leads"},
        {"no op's own backward is wrong, but the whole is: ", moves});
  }
  add("a constant that does not move",
      [](const Tensor& in) { return in.detach() * in + d64({3, 4}) * 2.0; }, {leaf({1, 2})},
      Reason::wrong_factor, {"!moves with"}, {cut});
  add("0 at a guarded place",  // (e^x - 1) / x
      [](const Tensor& a) {
        const Mask zero = a == 0.0;
        const Tensor safe = where(zero, 1.0, a);
        return where(zero, 1.0, expm1(safe) / safe);
      },
      {leaf({0, 0.5, -1})}, Reason::absent, {}, {"whole"});
  add("cut at 0", [](const Tensor& a) { return where(a == 0.0, a.detach(), a); }, {leaf({0, 0.5})},
      Reason::absent, {}, {"whole"});
}

void add_shapes(Table& add) {
  const Tensor W = d64({{1, 2, 3}, {4, 5, 6}, {7, 8, 10}}), x = random_leaf({2, 3});
  add("the Jacobian transposed",
      one_op([=](const Tensor& v) { return matmul(W, v); },
             [=](const Tensor& g, const Tensor&) { return matmul(W, g); }),
      {random_leaf({3})}, Reason::transposed, {"J v where it should compute Jᵀ v"},
      {"op 1 of 1, planted"});
  for (const std::int64_t columns : {3, 2})
    add(fmt::format("a gradient of {} columns transposed", columns),
        one_op(cube,
               [](const Tensor& g, const Tensor& v) {
                 return reshape(transpose(g * v * v * 3.0, 1, 2), v.shape());
               }),
        {random_leaf({2, 3, columns})}, Reason::transposed, {"the gradient of input 0 (2, 3, "});
  add("a cotangent transposed",
      one_op([=](const Tensor& v) { return matmul(v, W); },
             [=](const Tensor& g, const Tensor&) {
               return matmul(transpose(g, 0, 1), transpose(W, 0, 1));
             }),
      {random_leaf({3, 3})}, Reason::transposed, {"takes the cotangent of output 0 (3, 3)"});
  add("a shape", one_op(cube, [](const Tensor& g, const Tensor& v) { return sum(g * v, {0}); }),
      {x}, Reason::wrong_shape,
      {"planted: gradient 0 has shape (3,) but its Tensor has shape (2, 3)"},
      {"op 1 of 1, planted: its backward throws: planted: gradient 0 has shape (3,)"});
  add("a shape within the formula",
      one_op(cube, [](const Tensor& g, const Tensor& v) { return matmul(g, v); }), {x},
      Reason::wrong_shape);
  add("a dtype", one_op(cube, [](const Tensor& g, const Tensor&) { return to(g, DType::float32); }),
      {x}, Reason::wrong_dtype, {"gradient 0 is float32"});
  add("a formula that throws", doubled_by([](Context&) { throw std::out_of_range("the table"); }),
      {x}, Reason::unknown, {"planted: the table"},
      {"op 1 of 1, planted: its backward throws: the table"});
}

void add_numbers(Table& add) {
  const Tensor x = random_leaf({4});
  add("float32",
      one_op([](const Tensor& v) { return to(exp(to(v * 2.0, DType::float32)), DType::float64); },
             [](const Tensor& g, const Tensor& v) { return g * exp(v * 2.0) * 3.0; }),
      {x}, Reason::float32_rounding, {}, {"planted"});
  add("NaN", one_op(cube, [](const Tensor& g, const Tensor& v) { return g * v * v * v / v * 3.0; }),
      {leaf({1, 0})}, Reason::not_finite, {"d input 0 (1)", "its analytic gradient is not"});
  add("infinity", cube_times(d64({1, inf})), {leaf({1, 2})}, Reason::not_finite, {"d input 0 (1)"});
  add("NaN of log", doubled_by([](Context& ctx) { ctx.add(0, log(ctx.gradient() * 0.0 - 1.0)); }),
      {x}, Reason::not_finite, {}, {"op 1 of 1, planted: its backward is wrong"});
  const Parts safe = {"op 1, ", "safe first"};
  add("where() too late", [](const Tensor& a) { return where(a > 0.0, sqrt(a), 0.0); },
      {leaf({-1, 2})}, Reason::not_finite, safe, {"whole"});
  add("an overflow that saturates", [](const Tensor& a) { return sigmoid(exp(a)); },
      {leaf({1000, 1})}, Reason::not_finite, safe, {"whole"});
  add("the gradient of a masked -inf",
      one_op([](const Tensor& v) { return masked_fill(v, Mask{true, false}, -inf); },
             [](const Tensor& g, const Tensor&) { return g * 1.0; }),
      {leaf({-1, 1})}, Reason::spurious);
  add("5 at the kink of abs",
      one_op([](const Tensor& v) { return abs(v); },
             [](const Tensor& g, const Tensor&) { return g * 5.0; }),
      {leaf({0})}, Reason::spurious);
  // 1.1 of it, behind a mask that lets nothing else through.
  const Tensor mask = d64({{0, -1e9, -1e9}, {0, 0, -1e9}, {0, 0, 0}});
  add(
      "a mask of -1e9",
      [adds = one_op([=](const Tensor& v) { return v + mask; },
                     [](const Tensor& g, const Tensor&) { return g * 1.1; })](const Inputs& in) {
        return softmax(adds(in)[0], -1);
      },
      {leaf({{0.3, -1, 2}, {0.5, 0.1, -2}, {1, 2, 3}})}, Reason::wrong_factor);
  add("an added constant",
      one_op(cube, [](const Tensor& g, const Tensor& v) { return g * v * v * 3.0 + 1e-3; }), {x},
      Reason::not_linear, {"a zero cotangent for output 0 gives 0.001"});
  add("a square of the cotangent",
      one_op(cube, [](const Tensor& g, const Tensor& v) { return g * g * v * v * 3.0; }), {x},
      Reason::not_linear);
  add("several factors", cube_times(d64({1, 0.6, 1.4, 1})), {leaf({1, 2, 3, 4})}, Reason::unknown,
      {"on the diagonal, 2 of 4"});
  add("sine within every step",
      one_op([](const Tensor& v) { return sin(v * 1e13); },
             [](const Tensor& g, const Tensor& v) { return g * cos(v * 1e13) * 1.1e13; }),
      {leaf({1e-13, -2e-13})}, Reason::wrong_factor);
  add("a hook",
      [](const Tensor& a) {
        Tensor y = exp(a);
        if (y.requires_grad())
          y.register_hook([](const Tensor& g) { return g * 2.0; });
        return sin(y);
      },
      {leaf({1, 2})}, Reason::wrong_factor, {},
      {"op 1, exp: a hook on its output changes its gradient"});
}

void add_states(Table& add) {
  const Tensor x = random_leaf({4});
  const std::string two_runs = "two runs of its backward give different gradients";
  const auto counts = [](const std::shared_ptr<int>& calls) { return 3.0 + 1e-14 * ++*calls; };
  const auto never = [](int) { return std::make_shared<int>(0); };
  const auto state = [&](const char* name, const TensorFunction& f, const Parts& says,
                         const Parts& explained, Missed missed = {}) {
    add(name, f, {x}, Reason::nondeterministic, says, explained, missed);
  };
  state("numbers drawn by a generator of its own",
        [own = std::make_shared<Generator>(1)](const Tensor& a) {
          return a * randn({4}, *own, DType::float64);
        },
        {"the same result every time"}, {"the function is not deterministic: two calls"});
  const TensorFunction draws =
      one_op(cube, [](const Tensor& g, const Tensor& v) { return dropout(g * v * v * 3.0, 0.5); });
  state("a backward that draws", [=](const Tensor& a) { return draws({a * 2.0})[0]; },
        {"op 2, planted: ", two_runs}, {", planted", two_runs});
  state("a backward that counts",
        one_op(cube, [=, calls = never(0)](const Tensor& g,
                                           const Tensor& v) { return g * v * v * counts(calls); }),
        {"two runs gave the gradients"}, {}, {.sweep = true});
  state("graphs that are counted",
        [=, calls = never(0)](const Inputs& in) { return cube_times(counts(calls) / 3)(in)[0]; },
        {}, {"the function may depend on something besides its inputs"}, {.sweep = true});
  state("runs that are counted",
        [=](const Inputs& in) {
          return one_op(cube, [=, runs = never(0)](const Tensor& g, const Tensor& v) {
            return g * v * v * counts(runs);
          })(in)[0];
        },
        {}, {}, {.fast = true, .sweep = true});
  state("calls that are counted",
        [calls = std::make_shared<double>(0)](const Tensor& a) { return a * (*calls += 1); }, {},
        {"the function is not deterministic: two calls on the same inputs gave ", " at (0)"});
  // Inputs that are changed.
  add("an input is set",
      [](const Tensor& a) {
        set_element(Tensor(a), 1, 3);
        return a * 2.0;
      },
      {leaf({1, 2})}, Reason::inputs_modified,
      {"the function changes input 0 at (1), which was 2 and is 3"}, {"changes input 0 at (1)"});
  add("1 is added to an input",
      [](const Tensor& a) {
        set_element(Tensor(a), 1, numbers(a)[1] + 1);
        return a * 2.0;
      },
      {leaf({1, 2})}, Reason::inputs_modified, {"was 2 and is 3"}, {"changes input 0 at (1)"});
  add("a constant is changed in the backward, hidden from the library",
      [](const Inputs& in) {
        return record(
            "planted", {in[0], in[1]}, [](std::span<const Tensor> v) { return v[0] * v[1]; },
            [c = Saved(in[1])](Context& ctx) {
              ctx.add(0, ctx.gradient() * c.tensor());
              c.value->writable_data<double>()[0] = 9;
            });
      },
      {leaf({1, 2}), d64({3, 4})}, Reason::inputs_modified,
      {"input 1 at (0), which was 3 and is 9"}, {two_runs}, {.sweep = true});
}

void add_second(Table& add) {
  const Tensor x = leaf({1, -2});
  const auto second = [&](const char* name, const TensorFunction& f, Reason reason,
                          const Parts& says, const Parts& explained) {
    add(name, f, {x}, reason, says, explained, {}, 2);
  };
  const auto constant = [](const Inputs& in) {
    return record(
        "planted", {exp(in[0])}, [](std::span<const Tensor> v) { return v[0] * v[0]; },
        [value = Saved(exp(in[0]).detach())](Context& ctx) {
          ctx.add(0, ctx.gradient() * value.tensor() * 2.0);
        });
  };
  second("its input counts as a constant", constant, Reason::wrong_factor,
         {"gradgradcheck: d gradient of input 0 ("},
         {"op 3 of 3, planted: the gradient of its gradient is wrong"});
  const auto other = [](const Inputs& in) {
    return record(
        "planted", {exp(in[0])}, [](std::span<const Tensor> v) { return exp(v[0]); },
        [v = Saved(exp(in[0]))](Context& ctx) {
          const Tensor g = ctx.gradient() * exp(v.tensor());
          ctx.add(0, ctx.create_graph() ? g + 0.01 : g);
        });
  };
  second("another gradient under create_graph", other, Reason::unknown, {"under create_graph"},
         {"planted: its backward under create_graph differs", "!whole is right"});
  const auto inner = one_op(cube, [](const Tensor& g, const Tensor& v) {
    return record(
        "inner", {g}, [=](std::span<const Tensor> in) { return in[0] * v * v * 3.0; },
        [](Context& ctx) { ctx.add(0, sum(ctx.gradient())); });
  });
  second("a shape of the second gradient", inner, Reason::wrong_shape,
         {"inner: gradient 0 has shape ()"}, {"inner: gradient 0 has shape ()"});
}

}  // namespace

TEST_CASE("planted mistakes: the verdict of each checker", "[gradcheck][explain][verdicts]") {
  CHECK(gradcheck(one_op(cube, cube_gradient), {random_leaf({2, 8})}));
  Table table;
  for (const auto& add : {add_factors, add_zeros, add_shapes, add_numbers, add_states, add_second})
    add(table);
  for (const Planted& p : table.rows)
    DYNAMIC_SECTION(p.name) {
      Inputs before;
      for (const Tensor& x : p.inputs)
        before.push_back(x.detach().clone());
      const auto judge = [&](const GradcheckOptions& options) {
        return p.order == 1 ? gradcheck(p.f, p.inputs, options)
                            : gradgradcheck(p.f, p.inputs, options);
      };
      const GradcheckReport full = judge({}), fast = judge({.fast_mode = true});
      for (const GradcheckReport* report : {&full, &fast}) {
        INFO(report->table());
        const bool misses = report == &fast && p.missed.fast;
        CHECK(report->ok == misses);
        CHECK(std::string(to_string(report->reason)) ==
              to_string(misses ? Reason::none : p.reason));
        CHECK(report->message.find('\n') == std::string::npos);
        CHECK_THAT(report->message, ContainsSubstring(report->explanation));
      }
      check_parts(full.table(), p.says);
      for (std::size_t i = 0; i < before.size(); ++i)
        CHECK(same_bits(p.inputs[i].detach(), before[i]));
      if (p.order == 2)
        CHECK(gradcheck(p.f, p.inputs));

      const auto explained = explain_gradient(p.f, p.inputs, {.second_order = p.order == 2});
      INFO(to_string(explained));
      CHECK_FALSE(explained);
      check_parts(explained.message, p.explained);
      CHECK(explained.message.find("moves with") == explained.message.rfind("moves with"));
      CHECK(explained.first_wrong.has_value() ==
            (p.explained.empty() || explained.message.find("planted: ") < 15));
      if (p.explained.empty()) {
        REQUIRE(explained.first_wrong.has_value());
        CHECK(explained.ops[*explained.first_wrong].op == "planted");
      }
      if (p.order == 1) {
        std::string swept;
        try {
          swept = eps_sweep(p.f, p.inputs).conclusion;
        } catch (const std::exception& thrown) {
          swept = thrown.what();
        }
        INFO(swept);
        CHECK(swept.starts_with("right") == p.missed.sweep);
      }
      CHECK_FALSE(nn::check_layer(
          Layer{p.f}, [](const Layer& m, const Inputs& in) { return m.f(in)[0]; }, p.inputs));
    }
}
