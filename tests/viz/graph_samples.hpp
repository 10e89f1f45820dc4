#pragma once
// Graphs for tests of the graph page; tests/viz/graph.py opens their pages.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>
#include <xgrad/viz/graph.hpp>

namespace xgrad::testing {

struct GraphSample {
  std::string name;
  std::function<Tensor()> f;
  viz::GraphOptions options;
};

/// A square whose backward forgets the 2.
Tensor wrong_square(const Tensor& x);
/// a * b, whose backward forgets b.
Tensor forgetful_product(const Tensor& a, const Tensor& b);
/// A chain of tanh and products on numbers, with about this many nodes.
Tensor long_chain(const Tensor& w, std::size_t nodes);
/// Names and scopes with control text of HTML, DOT and terminals.
inline const std::string hostile_text = "</script><b>\" ' \\ {x} & \x1b[31m \u202e \u2028 \xff";

/// small, wrong, layers, hostile, large, limits.
std::vector<GraphSample> graph_samples();

/// Checks properties that any graph must have.
void check_consistent(const viz::Graph& graph);
/// The number of gradient checks with this verdict.
std::size_t checks_with(const viz::Graph& graph, viz::GraphCheck::Verdict verdict);

}  // namespace xgrad::testing
