#pragma once
// Graphs that the tests of the graph page share; tests/pages/graph.py looks at their pages.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>
#include <xgrad/pages/graph.hpp>

namespace xgrad::testing {

struct GraphSample {
  std::string name;
  std::function<Tensor()> f;
  pages::GraphOptions options;
};

/// A square whose backward forgets the 2.
Tensor wrong_square(const Tensor& x);
/// a * b, whose backward forgets b.
Tensor forgetful_product(const Tensor& a, const Tensor& b);
/// A chain of tanh and products on numbers, of about so many nodes.
Tensor long_chain(const Tensor& w, std::size_t nodes);
/// Names and scopes with all that HTML, DOT and terminals would obey.
inline const std::string hostile_text = "</script><b>\" ' \\ {x} & \x1b[31m \u202e \u2028 \xff";

/// small, wrong, layers, hostile, large, limits.
std::vector<GraphSample> graph_samples();

/// Checks what must hold of any graph that ran.
void check_consistent(const pages::Graph& graph);
/// How many checks of gradients have this verdict.
std::size_t checks_with(const pages::Graph& graph, pages::GraphCheck::Verdict verdict);

}  // namespace xgrad::testing
