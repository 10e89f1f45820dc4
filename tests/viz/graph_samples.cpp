#include "viz/graph_samples.hpp"

#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/graph.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/nn/module.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

namespace xgrad::testing {
namespace {

GraphSample small() {
  const Tensor w = leaf({3}), b = leaf({0.5}), x = leaf({1, -2});
  return {"small",
          [=] {
            const Tensor y = w * x + b;  // w and b are broadcast
            return sum(y * y + tanh(y));
          },
          {.names = {{"w", w}, {"b", b}, {"x", x}}, .title = "Small"}};
}

GraphSample wrong() {
  const Tensor w = leaf(3), x = leaf(2);
  return {"wrong",
          [=] { return wrong_square(w * x) + w; },
          {.names = {{"w", w}, {"x", x}}, .title = "A planted mistake"}};
}

GraphSample layers() {
  manual_seed(1);
  const lm::TransformerBlock block(8, 2, 0, true);
  const Tensor x = normal({1, 4, 8}, 1, DType::float32).requires_grad_();
  viz::GraphOptions options{.names = nn::named_parameters(block), .title = "A block, decomposed"};
  options.names.emplace_back("x", x);
  return {"layers",
          [=] {
            const Decompose by_ordinary_ops;
            const Scope scope("h", 0);
            return mean(block(x) * block(x));
          },
          options};
}

GraphSample hostile_names() {
  const Tensor w = leaf({1, 2}), v = leaf({1, 2});
  return {"hostile",
          [=] {
            const Scope outer(hostile_text), inner("in.ner");
            const Tensor y = record(
                hostile_text, {w}, [](std::span<const Tensor> in) { return in[0] * 2.0; },
                [](Context& ctx) { ctx.add(0, ctx.gradient() * 2.0); });
            return sum(y * log(v - 1.0)) + sum(v.detach() * w) +
                   tensor(not_a_number, DType::float64);
          },
          {.names = {{hostile_text, w}}, .title = hostile_text}};
}

GraphSample large() {
  const Tensor w = leaf(0.9);
  return {"large",
          [=] { return long_chain(w, 10'000); },
          {.names = {{"w", w}}, .title = "10,000 nodes"}};
}

// A forgotten gradient, a hook, a masked score, and float32 sums that lose small numbers.
GraphSample limits() {
  const auto leaf32 = [](const Values& values) { return tensor(values).requires_grad_(); };
  const Tensor w = leaf32({1, 2, 3}), v = leaf32({4, 5, 6}), x = leaf32({1, -1e9, 2});
  return {"limits",
          [=] {
            Tensor y = w * 2.0;
            y.register_hook([](const Tensor& g) { return g * 10.0; });
            return sum(forgetful_product(tanh(w), v * 3.0)) + sum(y * y) + sum(w * 1e6) +
                   sum(softmax(x, 0) * w);
          },
          {.names = {{"w", w}, {"v", v}, {"x", x}}, .title = "What differences can tell"}};
}

// An op with a long name, after so many others that its number is long, too.
GraphSample long_names() {
  const Tensor w = leaf(0.9), x = normal({1, 2, 4}, 1).requires_grad_();
  return {"long_names",
          [=] {
            const Tensor y = x * long_chain(w, 120);
            return sum(scaled_dot_product_attention(y, y, y) * x);
          },
          {.names = {{"w", w}, {"x", x}}, .title = "Long names"}};
}

}  // namespace

Tensor forgetful_product(const Tensor& a, const Tensor& b) {
  return record(
      "forgetful_product", {a, b}, [](std::span<const Tensor> in) { return in[0] * in[1]; },
      [b = Saved(b)](Context& ctx) { ctx.add(0, ctx.gradient() * b.tensor()); });
}

Tensor wrong_square(const Tensor& x) {
  return record(
      "wrong_square", {x}, [](std::span<const Tensor> in) { return in[0] * in[0]; },
      [x = Saved(x)](Context& ctx) { ctx.add(0, ctx.gradient() * x.tensor()); });
}

Tensor long_chain(const Tensor& w, std::size_t nodes) {
  Tensor y = w;
  for (std::size_t i = 0; 2 * i + 1 < nodes; ++i) {
    const Scope layer("layer", i / 50);
    y = i % 2 == 0 ? tanh(y * w) : sin(y + w);
  }
  return y;
}

std::vector<GraphSample> graph_samples() {
  return {small(), wrong(), layers(), hostile_names(), large(), limits(), long_names()};
}

void check_consistent(const viz::Graph& graph) {
  for (std::size_t step = 0; step < graph.order.size(); ++step)
    CHECK(graph.nodes[graph.order[step]].step == step);
  for (const viz::GraphNode& node : graph.nodes) {
    for (const viz::GraphInput& in : node.inputs)
      if (in.node)
        CHECK(&graph.nodes[*in.node] < &node);
    if (!node.step) {
      CHECK(node.contributions.empty());
      continue;
    }
    std::vector<double> sum(static_cast<std::size_t>(node.value.numel()));
    bool finite = true;  // inf - inf says nothing
    for (const viz::GraphContribution& part : node.contributions) {
      finite = finite && summarize(part.gradient).all_finite();
      const std::vector<double> values = numbers(part.gradient);
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += values[i];
      if (part.consumer)
        CHECK(graph.nodes[*part.consumer].step.value() < node.step.value());
    }
    if (finite)
      CHECK(xgrad::detail::close(sum, numbers(node.gathered), 1e-5));
  }
}

std::size_t checks_with(const viz::Graph& graph, viz::GraphCheck::Verdict verdict) {
  std::size_t n = 0;
  for (const viz::GraphNode& node : graph.nodes) {
    n += node.step && node.whole.verdict == verdict ? 1 : 0;
    for (const auto& part : node.contributions)
      n += part.consumer && part.own.verdict == verdict ? 1 : 0;
  }
  return n;
}

}  // namespace xgrad::testing
