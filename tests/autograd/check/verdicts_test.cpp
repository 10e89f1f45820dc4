// The table of verdicts: planted mistakes are found at their places; right functions, however
// awkward, and random compositions of the catalogue are not called wrong.

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/function_checks.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/sanitizers.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/nn/attention.hpp>

#include "autograd/check/verdict_cases.hpp"
#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using namespace xgrad::testing;
using Inputs = std::vector<Tensor>;

namespace {

using Function = std::function<Tensor(const Inputs&)>;

constexpr std::size_t stride = XGRAD_SANITIZER ? 11 : 1;  // sanitizers take ten times as long

// ---- planted mistakes ----

struct Mistake {
  const char* name;
  int order;  // of the wrong derivatives
  std::function<void(Inputs&)> change = {};
};

// f as one op, with f's own gradient and then this mistake.
Tensor planted(const Function& f, const Inputs& in, const Mistake& mistake) {
  std::vector<Saved> saved(in.begin(), in.end());
  return record(
      "planted", std::span(in), [f](std::span<const Tensor> v) { return f({v.begin(), v.end()}); },
      [=](Context& ctx) {
        const bool graph = ctx.create_graph() && mistake.change;
        const ModeGuard recording({true, nullptr});
        Inputs at;
        for (const Saved& x : saved)
          at.push_back(graph ? x.tensor() * 1.0 : x.tensor().detach());
        for (Tensor& x : at)
          if (!x.requires_grad())
            x.requires_grad_();
        Inputs found = grad({f(at)}, at,
                            {.grad_outputs = {graph ? ctx.gradient() : ctx.gradient().detach()},
                             .create_graph = graph,
                             .allow_unused = true});
        if (mistake.change && (mistake.order == 1 || ctx.create_graph()))
          mistake.change(found);
        for (std::size_t i = 0; i < found.size(); ++i)
          if (found[i].defined())
            ctx.add(i, found[i]);
      });
}

Tensor constant(const Tensor& like, const std::function<double(Size)>& value) {
  Tensor c = zeros_like(like.detach());
  for (Size i = 0; i < c.numel(); ++i)
    set_element(c, i, value(i));
  return c;
}

std::vector<Mistake> mistakes() {
  const auto times = [](double c) { return [c](Inputs& g) { g[0] = g[0] * c; }; };
  return {
      {"twice", 1, times(2)},
      {"2 % more", 1, times(1.02)},
      {"negated", 1, times(-1)},
      {"absent", 1, [](Inputs& g) { g[0] = Tensor(); }},
      {"one element 0", 1,
       [](Inputs& g) { g[0] = g[0] * constant(g[0], [](Size i) { return i == 4 ? 0 : 1; }); }},
      {"in another order", 1, [](Inputs& g) { g[0] = flip(g[0], {-1}); }},
      {"NaN", 1,
       [](Inputs& g) {
         g[0] = g[0] + constant(g[0], [](Size i) { return i == 2 ? not_a_number : 0; });
       }},
      {"another gradient under create_graph", 2, times(1.1)},
      {"its inputs are constants", 2},
  };
}

struct Base {
  const char* name;
  Function f;
  Inputs inputs;
};

std::vector<Base> bases() {
  const Tensor x = normal({3, 4}, 1), q = normal({1, 2, 3, 4}, 2), k = normal({1, 2, 3, 4}, 3),
               v = normal({1, 2, 3, 4}, 4), w = normal({4}, 5);
  return {
      {"softmax", [](const Inputs& in) { return softmax(in[0], -1); }, {x}},
      {"softmax behind a mask",
       [](const Inputs& in) { return softmax(masked_fill(in[0], nn::future(3, 4), -inf), -1); },
       {x}},
      {"log_softmax of large numbers",
       [](const Inputs& in) { return log_softmax(in[0], -1); },
       {x * 100.0}},
      {"layer_norm", [](const Inputs& in) { return layer_norm(in[0], {4}, in[1]); }, {x, w}},
      {"layer_norm of small numbers",
       [](const Inputs& in) { return layer_norm(in[0], {4}, in[1]); },
       {x * 0.02, w}},
      {"rms_norm", [](const Inputs& in) { return rms_norm(in[0], {4}, in[1]); }, {x, w}},
      {"attention",
       [](const Inputs& in) {
         return scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = true});
       },
       {q, k, v}},
      {"cross_entropy",
       [](const Inputs& in) { return cross_entropy(in[0], Indices({1, 0, 3})); },
       {x}},
      {"linear_cross_entropy",
       [](const Inputs& in) {
         return linear_cross_entropy(in[0], in[1], Indices({1, 0, 3}), in[2]);
       },
       {x, normal({5, 4}, 8), normal({5}, 9)}},
      {"mse_loss", [](const Inputs& in) { return mse_loss(in[0], in[1]); }, {x, normal({3, 4}, 6)}},
      {"gelu of small numbers", [](const Inputs& in) { return gelu(in[0]); }, {x * 1e-3}},
      {"a product at 1e3", [](const Inputs& in) { return in[0] * in[0] * in[0]; }, {x * 1e3}},
      {"matmul",
       [](const Inputs& in) { return pow(matmul(in[0], in[1]), 2); },
       {x, normal({4, 2}, 7)}},
  };
}

// The message of a checker that calls it wrong: gradcheck in fast mode, or explain_gradient, which
// runs gradcheck and gradgradcheck.  NaN of a smooth function is not called a mistake of its ops.
std::string blamed(const Awkward& c, std::size_t& unchecked) {
  Inputs in;
  for (const Tensor& x : c.inputs)
    in.push_back(x.detach().clone().requires_grad_());
  const auto fast = gradcheck(c.f, in, {.fast_mode = true});
  const auto explained = explain_gradient(c.f, in, {.second_order = true});
  unchecked += explained.whole.unchecked > 0 ? 1 : 0;
  const bool nan = fast.reason == GradcheckReason::not_finite &&
                   std::isnan(fast.worst().worst.analytic) && !explained.first_wrong;
  return nan ? "" : (fast ? "" : fast.message) + (explained ? "" : explained.message);
}

// Numbers whose sum is constant.
struct ConstantSum {
  const char* name;
  Tensor (*f)(bool wrong, const Tensor& x);
};

}  // namespace

TEST_CASE("verdicts: planted mistakes are found, each at its place", "[verdicts]") {
  std::size_t tried = 0;
  std::vector<std::string> missed;
  for (const Base& base : bases())
    for (const Mistake& mistake : mistakes()) {
      if (++tried % stride != 0)
        continue;
      Inputs in;
      for (const Tensor& x : base.inputs)
        in.push_back(x.detach().clone().requires_grad_());
      const auto alone = [&](const Inputs& at) { return planted(base.f, at, mistake); };
      const auto amid = [&](const Inputs& at) {
        Inputs scaled;
        for (const Tensor& x : at)
          scaled.push_back(x * 1.5);
        return tanh(alone(scaled) * 0.5);
      };
      const bool first = mistake.order == 1;
      const auto report = first ? gradcheck(alone, in) : gradgradcheck(alone, in);
      const auto explained = explain_gradient(amid, in, {.second_order = true});
      const bool found = !report && (first || gradcheck(alone, in)) &&
                         (!first || report.disagree == 0 || report.worst().input == 0);
      const bool placed = explained.first_wrong &&
                          explained.ops[*explained.first_wrong].op == "planted" &&
                          (!first || explained.ops[*explained.first_wrong].input == 0);
      if (!found || !placed)
        missed.push_back(fmt::format("{}, {}: {}\n{}", base.name, mistake.name, report.message,
                                     to_string(explained)));
    }
  std::cout << fmt::format("{} planted mistakes, {} missed\n", tried / stride, missed.size());
  CHECK(missed == std::vector<std::string>{});
}

TEST_CASE("verdicts: functions that are right, but awkward, are not blamed", "[verdicts]") {
  std::size_t tried = 0, unchecked = 0;
  std::vector<std::string> wrong;
  for (const Awkward& c : awkward_functions()) {
    ++tried;
    if (const std::string text = blamed(c, unchecked); !text.empty())
      wrong.push_back(fmt::format("{}: {}", c.name, text));
  }
  std::cout << fmt::format("{} awkward functions, {} partly unchecked, {} blamed\n", tried,
                           unchecked, wrong.size());
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("verdicts: random compositions of the catalogue are not blamed", "[verdicts]") {
  std::size_t unchecked = 0;
  // The last nine: one has a sine at its maximum near 4e12, four a softmax of numbers like 1e6 or
  // 1e12, two a log_softmax of 1e-24 and 1, and two squares of sorted zeros.
  std::vector<std::uint64_t> seeds(500 / stride);
  std::iota(seeds.begin(), seeds.end(), 0);
  seeds.insert(seeds.end(),
               {21987, 20652, 22449, 22550, 5001758, 5000926, 5001065, 5000586, 5001418});
  std::vector<std::string> wrong;
  for (const std::uint64_t seed : seeds)
    if (const std::string text = blamed(random_composition(seed), unchecked); !text.empty())
      wrong.push_back(fmt::format("{}: {}", seed, text));
  std::cout << fmt::format("{} compositions, {} partly unchecked, {} blamed\n", seeds.size(),
                           unchecked, wrong.size());
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("verdicts: nondeterminism and a changed input are reported by every checker",
          "[verdicts]") {
  const Tensor x = normal({3, 4}, 1).requires_grad_(), before = x.detach().clone();
  const auto same = [](const Tensor& at) { return softmax(at, -1); };
  const auto messages = [&](const std::function<Tensor(const Tensor&)>& f) {
    return std::vector{gradcheck(f, {x}).message,
                       gradgradcheck(f, {x}).message,
                       explain_gradient(f, {x}).message,
                       compare(f, same, {x}).message,
                       compare(same, f, {x}).message,
                       check_causal(f, x).message,
                       check_batch_independence(f, x).message,
                       eps_sweep(f, {x}).conclusion};
  };
  double state = 0;
  for (const std::string& message :
       messages([&](const Tensor& at) { return softmax(at, -1) * (1 + (state += 1e-3)); }))
    CHECK_THAT(message, ContainsSubstring("two calls") && ContainsSubstring("the same result"));
  for (const std::string& message : messages([](const Tensor& at) {
         Tensor(at).copy_(at.detach() + 1.0);
         return softmax(at, -1) * 2.0;
       }))
    CHECK_THAT(message, ContainsSubstring("changes input 0 at (0, 0), which was ") &&
                            !ContainsSubstring("deterministic"));
  CHECK(same_bits(x.detach(), before));
  CHECK(compare(same, same, {x}));
}

TEST_CASE("verdicts: an entropy of sure guesses, where rounding takes more than it looks",
          "[verdicts]") {
  const auto entropy = [](const Tensor& x, double factor, bool cut) {
    const Tensor log_p = log_softmax(x, -1), p = cut ? exp(log_p).detach() : exp(log_p);
    const Tensor terms = record(
        "planted", {p, log_p}, [](std::span<const Tensor> v) { return v[0] * v[1]; },
        [factor, p = Saved(p), log_p = Saved(log_p)](Context& ctx) {
          ctx.add(0, ctx.gradient() * log_p.tensor() * factor);
          ctx.add(1, ctx.gradient() * p.tensor());
        });
    return -sum(terms, {-1});
  };
  for (const double surer : {30, 40, 50, 100, 300}) {  // differences are far below 1e-16
    const Tensor x = leaf({surer, 0, -3});
    const auto f = [&](const Tensor& at) { return entropy(at, 1, false); };
    INFO(surer);
    for (const bool fast : {false, true}) {
      CHECK(gradcheck(f, {x}, {.fast_mode = fast}));
      CHECK(gradgradcheck(f, {x}, {.fast_mode = fast}));
    }
    CHECK(explain_gradient(f, {x}, {.second_order = true}));
    if (simd_name() != "wasm")  // whose exp rounds otherwise, which is all that there is to compare
      CHECK_THAT(eps_sweep(f, {x}).conclusion, !ContainsSubstring("wrong"));
  }
  for (const double sure : {10, 20, 25, 28}) {
    const Tensor x = leaf({sure, 0});
    INFO(sure);
    CHECK(gradcheck([&](const Tensor& at) { return entropy(at, 1, false); }, {x}));
    CHECK_FALSE(gradcheck([&](const Tensor& at) { return entropy(at, 2, false); }, {x}));
    CHECK_FALSE(gradcheck([&](const Tensor& at) { return entropy(at, 1, true); }, {x}));
  }
}

// f with its own gradient or, if `wrong`, with that of a backward that forgets terms.
static Tensor forgetful(bool wrong, const Tensor& x, Tensor (*f)(const Tensor&),
                        Tensor (*factor)(const Tensor&)) {
  return wrong ? record(
                     "planted", {x}, [f](std::span<const Tensor> v) { return f(v[0]); },
                     [factor, x = Saved(x)](Context& ctx) {
                       ctx.add(0, ctx.gradient() * factor(x.tensor()));
                     })
               : f(x);
}

// Without the gradient of x, if `wrong`: then each op is right, and the whole is not.
static Tensor detached(bool wrong, const Tensor& x) { return wrong ? x.detach() : x; }
static Tensor softmax_rows(const Tensor& x) { return softmax(x, -1); }
static Tensor ones_as(const Tensor& x) { return ones_like(x); }
static Tensor log_softmax_rows(const Tensor& x) { return log_softmax(x, -1); }
static Tensor layer_norm_rows(const Tensor& x) { return layer_norm(x, {4}); }
static Tensor reciprocal_deviations(const Tensor& x) { return rsqrt(var(x, {-1}, 0, true) + 1e-5); }
static Tensor rms_norm_rows(const Tensor& x) { return rms_norm(x, {4}, {}, 1e-30); }
static Tensor reciprocal_roots(const Tensor& x) { return rsqrt(mean(x * x, {-1}, true)); }

constexpr ConstantSum constant_sums[] = {
    {"layer_norm",
     [](bool wrong, const Tensor& x) {
       return forgetful(wrong, x, layer_norm_rows, reciprocal_deviations);
     }},
    {"squares of rms_norm",
     [](bool wrong, const Tensor& x) {
       return square(forgetful(wrong, x, rms_norm_rows, reciprocal_roots));
     }},
    {"softmax",
     [](bool wrong, const Tensor& x) { return forgetful(wrong, x, softmax_rows, softmax_rows); }},
    {"exp of log_softmax",
     [](bool wrong, const Tensor& x) {
       return exp(forgetful(wrong, x, log_softmax_rows, ones_as));
     }},
    {"squares of a standardised column",
     [](bool wrong, const Tensor& x) {
       return square((x - mean(x, {0}, true)) / detached(wrong, xgrad::std(x, {0}, 1, true)));
     }},
    {"batch norm",
     [](bool wrong, const Tensor& x) {
       return (x - detached(wrong, mean(x, {0}, true))) * rsqrt(var(x, {0}, 0, true) + 1e-5);
     }},
    {"a softmax of one's own",
     [](bool wrong, const Tensor& x) { return exp(x) / detached(wrong, sum(exp(x), {-1}, true)); }},
    {"squares of weight-normed rows",
     [](bool wrong, const Tensor& x) {
       return square(x / detached(wrong, vector_norm(x, 2, {-1}, true)));
     }},
    {"squares of sine and cosine",
     [](bool wrong, const Tensor& x) { return square(sin(x)) + square(detached(wrong, cos(x))); }},
};

TEST_CASE("verdicts: outputs that are constant up to rounding", "[verdicts]") {
  // The sum; a large one; and as a part of the output.
  const std::function<Tensor(const Tensor& y, const Tensor& x)> ways[] = {
      [](const Tensor& y, const Tensor&) { return sum(y); },
      [](const Tensor& y, const Tensor&) { return sum(y * 1e3) + 5.0; },
      [](const Tensor& y, const Tensor& x) {
        return cat({reshape(sum(y), {1}), exp(select(x, 0, 1))}, 0);
      }};
  std::size_t tried = 0;
  std::vector<std::string> missed, blamed_ones;
  for (const auto& [name, f] : constant_sums)
    for (const auto& way : ways)
      for (std::uint64_t seed = 0; seed < 40; ++seed) {
        if (++tried % stride != 0)
          continue;
        const Tensor x = normal({3, 4}, seed).requires_grad_();
        const auto right = [&, f = f](const Tensor& at) { return way(f(false, at), at); };
        const auto wrong = [&, f = f](const Tensor& at) { return way(f(true, at), at); };
        const auto told = [&, name = name](const std::string& message) {
          return fmt::format("{}, way {}, seed {}: {}", name, &way - ways, seed, message);
        };
        for (const bool fast : {false, true})
          if (const auto report = gradcheck(wrong, {x}, {.fast_mode = fast}); report)
            missed.push_back(told(report.message));
        if (const auto report = gradcheck(right, {x}, {.strict = true}); !report)
          blamed_ones.push_back(told(report.message));
        if (seed >= 4)
          continue;
        if (const auto found = explain_gradient(wrong, {x}); found || found.whole)
          missed.push_back(told(found.message));
        if (const auto found = eps_sweep(wrong, {x}); found.conclusion.starts_with("right"))
          missed.push_back(told(found.conclusion));
        if (const auto found = explain_gradient(right, {x}, {.second_order = true}); !found)
          blamed_ones.push_back(told(found.message));
      }
  std::cout << fmt::format("{} constant outputs, {} mistakes missed, {} blamed\n", tried / stride,
                           missed.size(), blamed_ones.size());
  CHECK(missed == std::vector<std::string>{});
  CHECK(blamed_ones == std::vector<std::string>{});
}

TEST_CASE("verdicts: second derivatives of outputs that are constant up to rounding",
          "[verdicts]") {
  // The gradient of a softmax has itself a backward, which is right or forgets terms.
  const auto backward = [](const Tensor& g, const Tensor& p) {
    return p * (g - sum(g * p, {-1}, true));
  };
  const auto sum_of_softmax = [&](const Tensor& at, bool wrong) {
    return sum(record(
        "planted", {at}, [](std::span<const Tensor> v) { return softmax(v[0], -1); },
        [=, x = Saved(at)](Context& ctx) {
          const Tensor g = ctx.gradient(), p = softmax(x.tensor(), -1);
          ctx.add(0, record(
                         "its gradient", {g, p},
                         [=](std::span<const Tensor> v) { return backward(v[0], v[1]); },
                         [=, g = Saved(g), p = Saved(p)](Context& inner) {
                           const Tensor u = inner.gradient(), gp = g.tensor(), q = p.tensor();
                           inner.add(0, backward(u, q));
                           const Tensor of_p = u * gp - u * sum(gp * q, {-1}, true);
                           inner.add(1, wrong ? u * gp : of_p - gp * sum(u * q, {-1}, true));
                         }));
        }));
  };
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    for (const bool wrong : {false, true})
      for (const bool fast : {false, true}) {
        const auto f = [&](const Tensor& at) { return sum_of_softmax(at, wrong); };
        const Tensor x = normal({3, 4}, seed).requires_grad_();
        CHECK(gradcheck(f, {x}, {.fast_mode = fast}));
        CHECK(gradgradcheck(f, {x}, {.fast_mode = fast}).ok == !wrong);
      }
}
