// The table of verdicts: planted mistakes are found, each at its place; functions that are right,
// however awkward, and random compositions of the catalogue are not blamed.

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <xgrad/autograd/check/compare.hpp>
#include <xgrad/autograd/check/explain.hpp>
#include <xgrad/autograd/check/function_checks.hpp>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/masks.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;
using Inputs = std::vector<Tensor>;

namespace {

using Function = std::function<Tensor(const Inputs&)>;

// ---- planted mistakes ----

struct Mistake {
  const char* name;
  int order;  // of the derivatives that are wrong
  std::function<void(Inputs&)> change = {};
};

// One op that is f, with f's own gradient and then this mistake in it.
Tensor planted(const Function& f, const Inputs& in, const Mistake& mistake) {
  std::vector<Saved> saved(in.begin(), in.end());
  return record(
      "planted", std::span(in),
      [f](std::span<const Tensor> v) {
        return f({v.begin(), v.end()});
      },
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
      {"another reading under create_graph", 2, times(1.1)},
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
       [](const Inputs& in) {
         return cross_entropy(in[0], Indices({1, 0, 3}));
       },
       {x}},
      {"mse_loss", [](const Inputs& in) { return mse_loss(in[0], in[1]); }, {x, normal({3, 4}, 6)}},
      {"gelu of small numbers", [](const Inputs& in) { return gelu(in[0]); }, {x * 1e-3}},
      {"a product at 1e3", [](const Inputs& in) { return in[0] * in[0] * in[0]; }, {x * 1e3}},
      {"matmul",
       [](const Inputs& in) { return pow(matmul(in[0], in[1]), 2); },
       {x, normal({4, 2}, 7)}},
  };
}

// ---- right, but awkward ----

struct Awkward {
  const char* name;
  Function f;
  Inputs inputs;
};

Function of(Tensor (*f)(const Tensor&)) {
  return [f](const Inputs& in) { return f(in[0]); };
}

std::vector<Awkward> awkward() {
  const auto z = [](const Dims& sizes) { return zeros(sizes, DType::float64); };
  const Tensor ties = leaf({{2, 2, 2}, {1, 3, 3}}), x = normal({3, 4}, 1);
  const auto at = [](double v) { return leaf({v}); };
  const auto hidden = [](const Inputs& in) { return matmul(relu(matmul(in[0], in[1])), in[2]); };
  return {
      {"relu at 0", of(relu), {leaf({-1, 0, 2})}},
      {"relu near 0", of(relu), {leaf({3e-7, -3e-7, 1e-10, -1e-13})}},
      {"abs at 0", of(abs), {leaf({-1, 0, 2})}},
      {"leaky_relu at 0", [](const Inputs& in) { return leaky_relu(in[0]); }, {z({3})}},
      {"elu at 0", [](const Inputs& in) { return elu(in[0]); }, {z({3})}},
      {"clamp at its ends",
       [](const Inputs& in) { return clamp(in[0], -1, 1); },
       {leaf({-1, 0, 1})}},
      {"hardtanh at its ends",
       [](const Inputs& in) { return hardtanh(in[0]); },
       {leaf({-1, 0, 1})}},
      {"softplus at its threshold",
       [](const Inputs& in) { return softplus(in[0]); },
       {leaf({20, 19.9999999, -800})}},
      {"relu of padded rows",
       hidden,
       {cat({normal({2, 3}, 1), z({2, 3})}, 0), normal({3, 5}, 2), normal({5, 2}, 3)}},
      {"max at ties", [](const Inputs& in) { return max(in[0]); }, {ties}},
      {"amax at ties", [](const Inputs& in) { return amax(in[0], {-1}); }, {ties}},
      {"amin at ties", [](const Inputs& in) { return amin(in[0], {0}); }, {ties}},
      {"topk at ties", [](const Inputs& in) { return topk(in[0], 2).values; }, {ties}},
      {"all of topk at ties", [](const Inputs& in) { return topk(in[0], 3).values; }, {ties}},
      {"maximum of equals", [](const Inputs& in) { return maximum(in[0], in[1]); }, {ties, ties}},
      {"median-like choice",
       [](const Inputs& in) { return select(topk(in[0], 3).values, 1, 1); },
       {ties}},
      {"steep tanh", [](const Inputs& in) { return tanh(in[0] * 1e8); }, {at(0)}},
      {"steeper tanh", [](const Inputs& in) { return tanh(in[0] * 1e18); }, {at(0)}},
      {"steep sigmoid", [](const Inputs& in) { return sigmoid(in[0] * 1e5); }, {leaf({0, 1e-6})}},
      {"rms_norm of zeros", [](const Inputs& in) { return rms_norm(in[0], {3}); }, {z({2, 3})}},
      {"layer_norm of zeros", [](const Inputs& in) { return layer_norm(in[0], {3}); }, {z({2, 3})}},
      {"layer_norm of nearly equal numbers",
       [](const Inputs& in) { return layer_norm(in[0], {3}); },
       {leaf({{1, 1 + 1e-9, 1 - 2e-9}, {5, 5, 5 + 1e-6}})}},
      {"layer_norm of small numbers",
       [](const Inputs& in) { return layer_norm(in[0], {4}); },
       {x * 1e-6}},
      {"std of equal numbers",
       [](const Inputs& in) { return xgrad::std(in[0], {-1}); },
       {leaf({{1, 1, 1}})}},
      {"a norm at 0", [](const Inputs& in) { return vector_norm(in[0]); }, {z({3})}},
      {"log near 0", of(log), {leaf({5e-7, 1e-12, 1})}},
      {"log at 0", of(log), {leaf({0, 1})}},
      {"log below 0", of(log), {leaf({-1, 1})}},
      {"sqrt near 0", of(sqrt), {leaf({1e-7, 1e-15, 1})}},
      {"sqrt at 0", of(sqrt), {leaf({0, 1})}},
      {"rsqrt near 0", of(rsqrt), {leaf({1e-8, 1})}},
      {"1 / x near 0", [](const Inputs& in) { return 1.0 / in[0]; }, {leaf({1e-6, -1e-9, 2})}},
      {"pow 0.5 near 0", [](const Inputs& in) { return pow(in[0], 0.5); }, {leaf({1e-7, 4})}},
      {"x^3 at 0 and 1e4", [](const Inputs& in) { return pow(in[0], 3); }, {leaf({0, 1e4})}},
      {"exp at 700 and -700", of(exp), {leaf({700, -700})}},
      {"exp beside its limits", of(exp), {leaf({-740, 709})}},
      {"sin of large numbers", of(sin), {x * 1e6}},
      {"layer_norm beside 1e6", [](const Inputs& in) { return layer_norm(in[0], {4}); }, {x + 1e6}},
      {"the root of squares at 0",
       [](const Inputs& in) { return sqrt(sum(in[0] * in[0])); },
       {z({3})}},
      {"1e12", [](const Inputs& in) { return in[0] * 3.0; }, {at(1e12)}},
      {"1e-9 sin", [](const Inputs& in) { return sin(in[0]) * 1e-9; }, {leaf({0.3, 2})}},
      {"cancellation of 1e8",
       [](const Inputs& in) { return (in[0] + 1e8) - 1e8; },
       {leaf({0.3, -2})}},
      {"beside 1e9", [](const Inputs& in) { return sin(in[0]) + 1e9; }, {leaf({0.3, -2})}},
      {"beside 1e17", [](const Inputs& in) { return in[0] + 1e17; }, {at(0.3)}},
      {"a product at 1e3", [](const Inputs& in) { return in[0] * in[1]; }, {x * 1e3, x * -2e3}},
      {"a quotient at 1e3", [](const Inputs& in) { return in[0] / in[1]; }, {x * 1e3, x * 1e-3}},
      {"products of unlike sizes",
       [](const Inputs& in) { return matmul(in[0], in[1]); },
       {x * 1e6, normal({4, 2}, 3) * 1e-6}},
      {"a product with 0", [](const Inputs& in) { return prod(in[0]); }, {leaf({2, 0, 3, 0})}},
      {"softmax at 1e3", [](const Inputs& in) { return softmax(in[0], -1); }, {x * 1e3}},
      {"scores + log(mask)",
       [](const Inputs& in) {
         return softmax(in[0] + log(tril(ones({4, 4}, DType::float64))), -1);
       },
       {normal({4, 4}, 2)}},
      {"a mask of -1e9",
       [](const Inputs& in) {
         return softmax(in[0] + triu(full({4, 4}, -1e9, DType::float64), 1), -1);
       },
       {normal({4, 4}, 2)}},
      {"a row that is masked",
       [](const Inputs& in) {
         return softmax(masked_fill(in[0], Mask({{true, true}, {false, true}}), -1e9), -1);
       },
       {normal({2, 2}, 2)}},
      {"-inf given", [](const Inputs& in) { return softmax(in[0], -1); }, {leaf({-inf, 1, 2})}},
      {"cross_entropy at 1e3",
       [](const Inputs& in) {
         return cross_entropy(in[0], Indices({1, 0, 3}));
       },
       {x * 1e3}},
      {"logsigmoid far out", of(logsigmoid), {leaf({-1e3, 1e3, 0})}},
      {"gelu far out", [](const Inputs& in) { return gelu(in[0]); }, {leaf({-100, 100, 0})}},
      {"a sign",
       [](const Inputs& in) { return where(in[0] > 0, ones_like(in[0]), -1.0); },
       {leaf({0.6, -2, 0})}},
      {"constant", [](const Inputs& in) { return in[0] * 0.0 + 5.0; }, {leaf({1, 2})}},
      {"moduli", [](const Inputs& in) { return relu(in[0]) + relu(-in[0]); }, {leaf({1, 0, -2})}},
  };
}

// ---- random compositions ----

class Composer {
 public:
  explicit Composer(std::uint64_t seed) : generator_(seed) {}

  Awkward make() {
    Inputs inputs;
    for (int i = 0; i < 3; ++i) {
      Tensor x = randn({3, 4}, generator_, DType::float64);
      const double scale = std::pow(10.0, pick(3) == 0 ? pick(13) - 6 : 0);
      x = x * scale;
      if (pick(4) == 0)  // ties
        for (const Size j : {2, 3, 7})
          set_element(x, j, numbers(x)[1]);
      if (pick(4) == 0)  // at kinks
        for (const Size j : {0, 5, 6})
          set_element(x, j, 0);
      inputs.push_back(x.detach());
    }
    std::vector<int> steps;
    for (std::size_t n = 2 + pick(5); n > 0; --n) {
      steps.push_back(pick(static_cast<int>(std::size(ops))));
      steps.push_back(pick(8));
    }
    return {"", [steps](const Inputs& in) { return run(steps, in); }, inputs};
  }

 private:
  int pick(int n) { return static_cast<int>(generator_.uniform_double() * n); }

  // Ops of (3, 4), (3, 4) -> (3, 4).
  using Op = Tensor (*)(const Tensor&, const Tensor&);
  static constexpr Op ops[] = {
      [](const Tensor& x, const Tensor&) { return relu(x); },
      [](const Tensor& x, const Tensor&) { return abs(x); },
      [](const Tensor& x, const Tensor&) { return gelu(x); },
      [](const Tensor& x, const Tensor&) { return tanh(x); },
      [](const Tensor& x, const Tensor&) { return sigmoid(x); },
      [](const Tensor& x, const Tensor&) { return exp(x); },
      [](const Tensor& x, const Tensor&) { return log(x); },
      [](const Tensor& x, const Tensor&) { return sqrt(x); },
      [](const Tensor& x, const Tensor&) { return rsqrt(x); },
      [](const Tensor& x, const Tensor&) { return sin(x); },
      [](const Tensor& x, const Tensor&) { return silu(x); },
      [](const Tensor& x, const Tensor&) { return softplus(x); },
      [](const Tensor& x, const Tensor&) { return mish(x); },
      [](const Tensor& x, const Tensor&) { return elu(x); },
      [](const Tensor& x, const Tensor&) { return leaky_relu(x); },
      [](const Tensor& x, const Tensor&) { return hardtanh(x); },
      [](const Tensor& x, const Tensor&) { return clamp(x, -0.5, 0.5); },
      [](const Tensor& x, const Tensor& y) { return maximum(x, y); },
      [](const Tensor& x, const Tensor& y) { return minimum(x, y); },
      [](const Tensor& x, const Tensor& y) { return x * y; },
      [](const Tensor& x, const Tensor& y) { return x / y; },
      [](const Tensor& x, const Tensor& y) { return x + y; },
      [](const Tensor& x, const Tensor& y) { return x - y; },
      [](const Tensor& x, const Tensor&) { return pow(x, 2); },
      [](const Tensor& x, const Tensor&) { return softmax(x, -1); },
      [](const Tensor& x, const Tensor&) { return log_softmax(x, 0); },
      [](const Tensor& x, const Tensor&) { return layer_norm(x, {4}); },
      [](const Tensor& x, const Tensor&) { return rms_norm(x, {4}); },
      [](const Tensor& x, const Tensor&) { return x - amax(x, {-1}, true); },
      [](const Tensor& x, const Tensor&) { return x + logsumexp(x, {0}, true); },
      [](const Tensor& x, const Tensor&) { return cumsum(x, 1); },
      [](const Tensor& x, const Tensor& y) { return matmul(matmul(x, transpose(y, 0, 1)), x); },
      [](const Tensor& x, const Tensor&) { return masked_fill(x, nn::future(3, 4), -1e9); },
      [](const Tensor& x, const Tensor&) {
        return softmax(masked_fill(x, nn::future(3, 4), -inf), -1);
      },
      [](const Tensor& x, const Tensor&) { return x / vector_norm(x, 2, {-1}, true); },
      [](const Tensor& x, const Tensor&) { return x * var(x, {0}, 1, true); },
      [](const Tensor& x, const Tensor&) { return topk(x, 4).values; },
      [](const Tensor& x, const Tensor&) { return flip(x, {0}) * x; },
      [](const Tensor& x, const Tensor& y) { return x * mean(y, {1}, true); },
      [](const Tensor& x, const Tensor&) { return tril(x) * 1e3; },
  };
  static Tensor run(const std::vector<int>& steps, const Inputs& in) {
    Inputs values = in;
    for (std::size_t i = 0; i < steps.size(); i += 2) {
      const std::size_t n = values.size();
      values.push_back(ops[steps[i]](values[n - 1 - static_cast<std::size_t>(steps[i + 1]) % 2],
                                     values[static_cast<std::size_t>(steps[i + 1]) % n]));
    }
    return values.back();
  }

  Generator generator_;
};

// What is said to be wrong, by gradcheck in fast mode or by explain_gradient, which asks gradcheck
// and gradgradcheck.
std::string blamed(const Awkward& c, std::size_t& unchecked) {
  Inputs in;
  for (const Tensor& x : c.inputs)
    in.push_back(x.detach().clone().requires_grad_());
  const auto fast = gradcheck(c.f, in, {.fast_mode = true});
  const auto explained = explain_gradient(c.f, in, {.second_order = true});
  unchecked += explained.whole.unchecked > 0 ? 1 : 0;
  return (fast ? "" : fast.message) + (explained ? "" : explained.message);
}

}  // namespace

TEST_CASE("verdicts: planted mistakes are found, each at its place", "[verdicts]") {
  std::size_t tried = 0;
  std::vector<std::string> missed;
  for (const Base& base : bases())
    for (const Mistake& mistake : mistakes()) {
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
      ++tried;
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
  std::cout << fmt::format("{} planted mistakes, {} missed\n", tried, missed.size());
  CHECK(missed == std::vector<std::string>{});
}

TEST_CASE("verdicts: functions that are right, but awkward, are not blamed", "[verdicts]") {
  std::size_t tried = 0, unchecked = 0;
  std::vector<std::string> wrong;
  for (const Awkward& c : awkward()) {
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
  constexpr std::uint64_t compositions = 500;
  std::vector<std::string> wrong;
  for (std::uint64_t seed = 0; seed < compositions; ++seed)
    if (const std::string text = blamed(Composer(seed).make(), unchecked); !text.empty())
      wrong.push_back(fmt::format("{}: {}", seed, text));
  std::cout << fmt::format("{} compositions, {} partly unchecked, {} blamed\n", compositions,
                           unchecked, wrong.size());
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("verdicts: what is not deterministic is told by every checker, and by no other reason",
          "[verdicts]") {
  const Tensor x = normal({3, 4}, 1).requires_grad_();
  double state = 0;
  const auto f = [&](const Tensor& at) { return softmax(at, -1) * (1 + (state += 1e-3)); };
  const auto same = [](const Tensor& at) { return softmax(at, -1); };
  for (const std::string& message :
       {gradcheck(f, {x}).message, explain_gradient(f, {x}).message, compare(f, same, {x}).message,
        check_causal(f, x).message, check_batch_independence(f, x).message,
        eps_sweep(f, {x}).reading}) {
    INFO(message);
    CHECK_THAT(message, ContainsSubstring("two calls") && ContainsSubstring("the same result"));
  }
  CHECK(compare(same, same, {x}));
}

TEST_CASE("verdicts: hooks, errors of other libraries, elements beyond the sample", "[verdicts]") {
  const Tensor x = normal({3, 4}, 1).requires_grad_();
  const auto hooked = [](const Tensor& at) {
    Tensor y = exp(at);
    y.register_hook([](const Tensor& g) { return g * 2.0; });
    return sin(y);
  };
  for (const bool second : {false, true}) {
    const auto found = explain_gradient(hooked, {x}, {.second_order = second});
    CHECK_FALSE(found.first_wrong.has_value());
    CHECK_THAT(found.message, ContainsSubstring("op 1, exp: a hook on its output changes"));
  }
  const auto with = [](const std::function<void(Context&)>& backward) {
    return [backward](const Inputs& in) {
      return record(
                 "planted", std::span(in), [](std::span<const Tensor> v) { return v[0] * 2.0; },
                 backward) *
             3.0;
    };
  };
  const auto throws = with([](Context&) { throw std::out_of_range("the table"); });
  CHECK_THAT(gradcheck(throws, {x}).message, ContainsSubstring("planted: the table"));
  CHECK_THAT(explain_gradient(throws, {x}).message,
             StartsWith("op 1 of 2, planted: its backward throws: the table"));
  const auto one_zero = with([](Context& ctx) {
    const Tensor g = ctx.gradient() * 2.0;
    ctx.add(0, g * constant(g, [](Size i) { return i == 7 ? 0 : 1; }));
  });
  const auto found = explain_gradient(one_zero, {x}, {.max_elements = 2});
  REQUIRE(found.first_wrong.has_value());
  CHECK(found.ops[*found.first_wrong].index == std::vector<std::size_t>{1, 3});
}

TEST_CASE("verdicts: mistakes beside large gradients and at places without a kink", "[verdicts]") {
  const auto wrong = [](const Function& f, const Tensor& x) {
    return gradcheck(f, {x.clone().requires_grad_()});
  };
  const Function exponential = [](const Inputs& in) {
    return record(
        "planted", std::span(in), [](std::span<const Tensor> v) { return exp(v[0]); },
        [x = Saved(in[0])](Context& ctx) {
          const Tensor at = x.tensor();
          ctx.add(0, ctx.gradient() * where(at < 0.0, 3.0, ones_like(at)) * exp(at));
        });
  };
  CHECK_FALSE(wrong(exponential, tensor({30, -1}, DType::float64)).ok);
  // (e^x - 1) / x, with 0 put in the place of its derivative at 0.
  const Function guarded = [](const Inputs& in) {
    const Mask zero = in[0] == 0.0;
    const Tensor safe = where(zero, 1.0, in[0]);
    return where(zero, 1.0, expm1(safe) / safe);
  };
  CHECK_FALSE(wrong(guarded, tensor({0, 0.5, -1}, DType::float64)).ok);
  const Function cut = [](const Inputs& in) { return where(in[0] == 0.0, in[0].detach(), in[0]); };
  CHECK_FALSE(wrong(cut, tensor({0, 0.5}, DType::float64)).ok);
}
