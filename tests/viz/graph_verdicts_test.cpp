// Verdicts of the page's own: float32 runs, elements that are checked together, a budget of work.
// tests/autograd/check/verdicts_test.cpp has those of differences.

#include <ctime>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/viz/graph.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"
#include "viz/graph_samples.hpp"

using namespace xgrad;
using testing::forgetful_product;
using viz::Graph;
using viz::GraphCheck;
using Verdict = GraphCheck::Verdict;

namespace {

Graph checked(const std::function<Tensor()>& f) { return viz::run_graph(f); }

// An op of one input, whose backward multiplies by this slope.
Tensor with_slope(const std::string& op, const Tensor& x,
                  const std::function<Tensor(const Tensor&)>& forward,
                  const std::function<Tensor(const Tensor&)>& slope) {
  return record(
      op, {x}, [forward](std::span<const Tensor> in) { return forward(in[0]); },
      [slope, x = Saved(x)](Context& ctx) { ctx.add(0, ctx.gradient() * slope(x.tensor())); });
}

// The ops whose own backward is called wrong.
std::vector<std::string> blamed(const Graph& graph) {
  std::vector<std::string> ops;
  for (const auto& node : graph.nodes)
    for (const auto& part : node.contributions)
      if (part.own.verdict == Verdict::wrong)
        ops.push_back(part.op);
  return ops;
}

Tensor cast(const Tensor& x, DType dtype) { return x.detach().to(dtype).requires_grad_(); }

// 1 where x is above 0, else 0.
Tensor step(const Tensor& x) { return clamp(x.detach() * 1e30, 0, 1); }

}  // namespace

TEST_CASE("graph: a backward that forgets an input is wrong", "[pages][graph]") {
  const Tensor w = leaf({1, 2}), v = leaf({3, 4});
  for (const DType dtype : {DType::float64, DType::float32}) {
    const Graph graph = viz::run_graph(
        [&] {
          const Tensor twice = v.to(dtype) * 2.0;
          return sum(forgetful_product(w.to(dtype), twice));
        },
        {.names = {{"w", w}, {"v", v}}});
    const std::string text = to_string(graph);
    INFO(text);
    CHECK_THAT(text,
               ContainsSubstring(dtype == DType::float64
                                     ? "product 5 adds nothing to mul 3: WRONG: numeric 1, 2"
                                     : "product 7 adds nothing to mul 4: WRONG: numeric 1, 2"));
    CHECK(blamed(graph).empty());
    // Later values have none, either: v, its copy and its double, in the order of the graph.
    std::vector<std::string> wrong;
    for (const std::size_t i : graph.wrong())
      wrong.push_back(graph.nodes[i].op + graph.nodes[i].name);
    if (dtype == DType::float32)
      CHECK(wrong == std::vector<std::string>{"leafv", "to", "mul"});
    CHECK_THAT(viz::graph_html(graph), ContainsSubstring("\"nothing\":[[1,{\"ok\":false"));
  }
  // Others add to the same gradient, before and after.
  const Graph shared = checked([&] { return sum(forgetful_product(w, v) + v * v) + sum(v); });
  CHECK_FALSE(shared.wrong().empty());
  const Graph twice = checked([&] {
    const Tensor y = v * 2.0;
    return sum(forgetful_product(w, y) * exp(y * w));
  });
  CHECK_FALSE(twice.wrong().empty());
}

TEST_CASE("graph: a gradient that is 0 need not be added", "[pages][graph]") {
  const Tensor w = leaf({1.25, -2.5, 0.5}), v = leaf({1, 2, 3});
  const Graph graph = checked([&] {
    const Tensor steps = record(
        "steps", {w},
        [](std::span<const Tensor> in) { return where(in[0] > 0.0, ones_like(in[0]), 0.0); },
        [](Context&) {});
    return sum(steps * v);
  });
  INFO(to_string(graph));
  CHECK(graph.wrong().empty());
  REQUIRE(graph.nodes[1].op == "steps");
  REQUIRE(graph.nodes[1].inputs.at(0).nothing.has_value());
  CHECK(graph.nodes[1].inputs[0].nothing->verdict == Verdict::right);
}

TEST_CASE("graph: a wrong slope is found next to any values", "[pages][graph]") {
  using Slope = std::function<Tensor(const Tensor&)>;
  const auto found = [](const Tensor& x, const Slope& forward, const Slope& slope) {
    const Graph graph = checked([&] { return sum(with_slope("mine", x, forward, slope)); });
    INFO(to_string(graph));
    CHECK(blamed(graph) == std::vector<std::string>{"mine"});
  };
  const Slope sine = [](const Tensor& v) { return sin(v); },
              half_cosine = [](const Tensor& v) { return cos(v) * 0.5; },
              exponential = [](const Tensor& v) { return exp(v); },
              logarithm = [](const Tensor& v) { return log(v); };
  // masked values, in few elements and in many, and large ones
  Tensor many = normal({12}, 4);
  set_element(many, 3, -1e9);
  set_element(many, 7, -1e30);
  for (const Tensor& x :
       {leaf({0.5, -1e9, 1, -0.25}), many.requires_grad_(), leaf({0.5, 3e7, -2e6, 1})})
    found(x, sine, half_cosine);
  // the right numbers in another order
  for (const DType dtype : {DType::float64, DType::float32})
    for (const Size n : {9, 20, 1000})
      found(cast(normal({n}, 6), dtype), exponential,
            [](const Tensor& v) { return flip(exp(v), {0}); });
  // one element, and not the largest
  for (const Tensor& x : {leaf({1000, 1e-5}), leaf({1e-9, 3, 1e4})})
    found(x, logarithm,
          [](const Tensor& v) { return (1.0 / v) * where(v > 10.0, ones_like(v) * 2.0, 1.0); });
  // next to a kink
  found(
      leaf({0, 1.5, -2}), [](const Tensor& v) { return relu(v); },
      [](const Tensor& v) { return step(v) * 1.1; });
}

TEST_CASE("graph: masked elements, and gradients too small for differences, are unchecked",
          "[pages][graph]") {
  for (const DType dtype : {DType::float64, DType::float32}) {
    const Tensor scores = cast(leaf({0.5, -1e9, 1, -1e30}), dtype), c = normal({4}, 5, dtype);
    CHECK(checked([&] { return sum(softmax(scores, 0) * c); }).wrong().empty());
    CHECK(checked([&] { return sum(sin(scores) * c); }).wrong().empty());
  }
  const Tensor masked = leaf({-1e9, -2e9}), x = leaf({1, 2});
  const Graph all = checked([&] { return sum(masked * 2.0); });
  CHECK(all.wrong().empty());
  CHECK_THAT(all.nodes[0].whole.message, ContainsSubstring("below -1e8"));
  const auto tiny = [](const Tensor& at) { return at * 1e-12 + 1.0; };
  for (const double slope : {1e-12, 2e-12, 1e-20}) {
    const Graph graph = checked([&] {
      return sum(with_slope("tiny", x, tiny, [&](const Tensor& at) { return at * 0.0 + slope; }));
    });
    CHECK(graph.wrong().empty());
    CHECK_THAT(graph.nodes[0].contributions.at(0).own.message,
               ContainsSubstring("too small for differences: it is "));
  }
}

TEST_CASE("graph: lost digits are not called wrong", "[pages][graph]") {
  for (const Size n : {3, 20}) {
    const Tensor w = normal({n}, 7, DType::float32).requires_grad_();
    for (const bool behind : {false, true}) {
      // The gradient 2 x is added to 1e6, in float32.
      const Graph drowned = checked([&] {
        const Tensor x = behind ? w * 3.0 : w;
        return sum(x * 1e6) + sum(x * x);
      });
      INFO(to_string(drowned));
      CHECK(drowned.wrong().empty());
      // Only the lost digits remain.
      const Graph alone = checked([&] {
        const Tensor x = behind ? w * 3.0 : w;
        return sum(x * 1e6) - sum(x * 1e6) + sum(x * x);
      });
      INFO(to_string(alone));
      CHECK(alone.wrong().empty());
      const Graph wrong = checked([&] {
        const Tensor x = behind ? w * 3.0 : w;
        return sum(testing::wrong_square(x)) + sum(x * x);
      });
      CHECK(blamed(wrong) == std::vector<std::string>{"wrong_square"});
    }
  }
}

TEST_CASE("graph: infinity, underflow and cancellation within an op are not called wrong",
          "[pages][graph]") {
  const Tensor infinite = leaf({700, 800, 1}), low = cast(leaf({-105, 1}), DType::float32);
  const auto functions = {
      std::function([&] { return sum(exp(infinite) * 2.0); }),
      std::function([&] {
        const Tensor y = silu(low);
        return sum(y * y);
      }),
  };
  for (const auto& f : functions) {
    const Graph graph = checked(f);
    INFO(to_string(graph));
    CHECK(graph.wrong().empty());
  }
  // The gradient of this is mere rounding.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Tensor x = cast(normal({2, 4}, seed) * 1000.0, DType::float32);
    const Graph graph = checked([&] {
      const Tensor y = rms_norm(x * 3e-4, {4});
      return sum(y * y);
    });
    INFO(to_string(graph));
    CHECK(graph.wrong().empty());
  }
}

TEST_CASE("graph: the work of a product counts", "[pages][graph]") {
  // Cheap ops that count as products.
  std::size_t calls = 0;
  const auto products = [&](Size n, int count) {
    const Tensor a = ones({n, n}).requires_grad_();
    calls = 0;
    return checked([&] {
      Tensor y = a;
      for (int i = 0; i < count; ++i)
        y = record(
            "matmul", {y, a},
            [&](std::span<const Tensor> in) {
              ++calls;
              return in[0] + in[1];
            },
            [](Context& ctx) {
              ctx.add(0, ctx.gradient());
              ctx.add(1, ctx.gradient());
            });
      return mean(y);
    });
  };
  const Graph some = products(512, 12);
  CHECK(some.wrong().empty());
  CHECK(testing::checks_with(some, Verdict::right) > 5);
  CHECK(calls > 24);
  CHECK(calls <= 12 + 12 + 2 * 60);  // the run, the run in float64, and 1e9 twice
  std::string skipped;
  for (const auto& node : some.nodes)
    skipped += node.whole.message;
  CHECK_THAT(skipped, ContainsSubstring("skipped: it takes more work"));
  const Graph none = products(1024, 8);
  CHECK(calls == 8);
  CHECK(testing::checks_with(none, Verdict::right) == 0);
}

TEST_CASE("graph: an op that is slow for its size is not run again and again", "[pages][graph]") {
  int calls = 0;
  const Tensor x = normal({4}, 1).requires_grad_();
  const Graph graph = checked([&] {
    return sum(record(
        "slow", {x},
        [&](std::span<const Tensor> in) {
          ++calls;
          for (const std::clock_t began = std::clock();
               std::clock() - began < CLOCKS_PER_SEC / 4;) {
          }
          return in[0].detach();
        },
        [](Context& ctx) { ctx.add(0, ctx.gradient()); }));
  });
  CHECK(calls == 2);  // the run, and the run in float64
  CHECK(graph.wrong().empty());
  CHECK_THAT(graph.nodes[0].contributions.at(0).own.message,
             ContainsSubstring("skipped: it takes more work"));
}

TEST_CASE("graph: kinks of many elements, and of ops in a row, are not called wrong",
          "[pages][graph]") {
  const auto fine = [](const std::function<Tensor()>& f) {
    const Graph graph = checked(f);
    INFO(to_string(graph));
    CHECK(testing::checks_with(graph, Verdict::wrong) == 0);
  };
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    for (const DType dtype : {DType::float64, DType::float32}) {
      const Tensor x = normal({48}, seed, dtype).requires_grad_();
      const Tensor weights = normal({48}, seed + 100, dtype),
                   mask = step(normal({48}, seed + 200, dtype));
      fine([&] { return sum(relu(x * mask) * weights); });
      fine([&] { return sum(leaky_relu(x * mask) * weights); });
      fine([&] { return sum(clamp(relu(x), 0, 1) * weights); });
    }
  const Tensor zero = leaf({0}), a = leaf({1, 2}), b = leaf({1, 2}), c = leaf({1, 2});
  fine([&] { return sum(relu(zero) - relu(-zero)); });
  fine([&] { return sum(relu(zero) - 0.1 * relu(-zero)); });
  fine([&] { return sum(maximum(minimum(a, b), c)); });
  const Tensor first = zeros({3, 4}, DType::float64).requires_grad_();
  const Tensor x = normal({5, 3}, 1), second = normal({4, 2}, 2);
  fine([&] { return sum(matmul(relu(matmul(x, first)), second)); });
}

TEST_CASE("graph: a fit that float32 cannot improve is not called wrong", "[pages][graph]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Tensor x = normal({64, 3}, seed) * 100.0 + 1000.0, best = normal({3, 1}, seed + 10);
    const Tensor y = matmul(x, best).to(DType::float32), data = x.to(DType::float32);
    const Tensor w = cast(best * (1 + 1e-7), DType::float32);
    const Graph graph = checked([&] {
      const Tensor off = matmul(data, w) - y;
      return mean(off * off);
    });
    INFO(to_string(graph));
    CHECK(testing::checks_with(graph, Verdict::wrong) == 0);
  }
}
