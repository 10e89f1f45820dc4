// Rules, and the graph page of every sample of the op table.

#include <algorithm>
#include <cstdlib>
#include <set>
#include <xgrad/pages/graph.hpp>

#include "autograd/ops/catalogue.hpp"
#include "autograd/ops/op_table.hpp"
#include "helpers/catch.hpp"
#include "pages/graph_samples.hpp"

using namespace xgrad;
using pages::Graph;
using pages::GraphNode;
using Verdict = pages::GraphCheck::Verdict;

TEST_CASE("graph: what has a rule is an op", "[pages][graph]") {
  std::size_t with_rules = 0;
  for (const std::string& op : testing::declared_ops())
    with_rules += pages::graph_rule(op) != nullptr ? 1 : 0;
  CHECK(with_rules == 35);
  CHECK(pages::graph_rule("wrong_square") == nullptr);
}

TEST_CASE("graph: differences blame no op of the table", "[pages][graph]") {
  using namespace xgrad::testing;
  std::set<std::string> ops;
  std::size_t checked = 0;
  for (const auto& rows :
       {elementwise_rows(), reduce_rows(), matmul_rows(), shape_rows(), index_rows()})
    for (const Row& row : rows)
      for (const Sample& sample : row.samples)
        for (const DType dtype : {DType::float64, DType::float32}) {
          std::vector<Tensor> inputs;
          Size elements = 0;
          for (const Tensor& x : sample.inputs) {
            elements += x.defined() ? x.numel() : 0;
            inputs.push_back(x.defined() ? x.detach().to(dtype).requires_grad_() : x);
          }
          if (!sample.differentiable || elements == 0 || elements > 300)
            continue;
          INFO(row.op << ": " << sample.name << ", " << to_string(dtype));
          const Graph graph = pages::run_graph(
              [&] {
                const Tensor y = sample.f(inputs);
                return y.requires_grad() ? sum(y * y)
                                         : sum(*std::ranges::find_if(inputs, &Tensor::defined));
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

// What tests/pages/graph.py opens.
TEST_CASE("graph: pages for a browser", "[.graph-pages]") {
  const char* const folder = std::getenv("XGRAD_PAGES");
  REQUIRE(folder != nullptr);
  for (const testing::GraphSample& sample : testing::graph_samples())
    pages::write_graph_html(std::string(folder) + "/" + sample.name + ".html", sample.f,
                            sample.options);
}
