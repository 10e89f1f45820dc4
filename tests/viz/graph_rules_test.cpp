// Rules, and the graph page of every sample of the op table.

#include <algorithm>
#include <cstdlib>
#include <set>
#include <xgrad/autograd/ops/rules.hpp>
#include <xgrad/viz/graph.hpp>

#include "autograd/ops/catalogue.hpp"
#include "golden/samples.hpp"
#include "helpers/catch.hpp"
#include "viz/graph_samples.hpp"

using namespace xgrad;
using viz::Graph;
using viz::GraphNode;
using Verdict = viz::GraphCheck::Verdict;

TEST_CASE("graph: rules are of ops, and the page has them as a reader writes formulas",
          "[pages][graph]") {
  const std::set<std::string> ops = testing::declared_ops();
  std::size_t with_rules = 0;
  for (const std::string& op : ops)
    with_rules += op_rule(op) != nullptr ? 1 : 0;
  CHECK(with_rules >= 60);
  CHECK(op_rule("wrong_square") == nullptr);
  REQUIRE(op_rule("tanh") != nullptr);
  CHECK(op_rule("tanh")->gradients[0] == "g * (c(a, 4) * sigmoid_slope(c(a, 2) * a))");
  const Tensor x = tensor({0.5, 2}).requires_grad_();
  const std::string page =
      viz::graph_html(viz::run_graph([&] { return sum(erf(tanh(x)) / softmax(x, 0)); }));
  for (const char* const text :
       {"g * (4 * sigmoid_slope(2 * a))", "g * ((2 * inv_sqrtpi) * exp(-(a * a)))", "tanh(a)",
        "g / b", "-g * (a / b) / b", "y ⊙ (g - Σ (g ⊙ y))"}) {
    INFO(text);
    CHECK(page.find(text) != std::string::npos);
  }
}

TEST_CASE("graph: differences blame no op of the table", "[pages][graph]") {
  using namespace xgrad::testing;
  std::set<std::string> ops;
  std::size_t checked = 0;
  for (const OpGroup& group : op_groups())
    for (const OpSample& sample : op_samples(group))
      for (const DType dtype : {DType::float64, DType::float32}) {
        std::vector<Tensor> inputs;
        Size elements = 0;
        for (const Tensor& x : sample.inputs) {
          elements += x.numel();
          inputs.push_back(x.detach().to(dtype).requires_grad_());
        }
        if (!sample.differences || elements == 0 || elements > 300)
          continue;
        INFO(sample.op << ": " << sample.name << ", " << to_string(dtype));
        const Graph graph = viz::run_graph(
            [&] {
              const Tensor y = sample.f(inputs);
              return y.requires_grad() ? sum(y * y) : sum(inputs[0]);
            },
            {.max_nodes = 500});
        check_consistent(graph);
        INFO(to_string(graph));
        CHECK(graph.wrong().empty());
        for (const GraphNode& node : graph.nodes)
          if (node.kind == GraphNode::Kind::op)
            ops.insert(node.op);
        checked += checks_with(graph, Verdict::right);
      }
  CHECK(ops.size() >= 85);
  CHECK(checked > 1000);
}

// Writes the pages that tests/viz/graph.py opens.
TEST_CASE("graph: pages for a browser", "[.graph-pages]") {
  const char* const folder = std::getenv("XGRAD_PAGES");
  REQUIRE(folder != nullptr);
  for (const testing::GraphSample& sample : testing::graph_samples())
    viz::write_graph_html(std::string(folder) + "/" + sample.name + ".html", sample.f,
                          sample.options);
}
