#pragma once
// The graph of one run as a page: every value, and every gradient with its contributions and
// checks.
//
//   write_graph_html("graph.html", [&] { return mse_loss(net(x), y); },
//                           {.names = nn::named_parameters(net)});
//   std::cout << to_string(run_graph([&] { return (w * x).sum(); }, {.names = {{"w", w}}}));
//
// The page steps through the backward pass in the engine's order.  The run is real: forward under a
// Trace, then backward under an observer of this thread.  It changes no grad() and writes to no
// memory that other threads may share.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "../autograd/tensor.hpp"

namespace xgrad::viz {

struct GraphOptions {
  /// Names of leaves and of constants, as listed by nn::named_parameters().
  std::vector<std::pair<std::string, Tensor>> names = {};
  std::string title = "Graph";
  Tensor gradient = {};         ///< of the result; needed unless it has one element
  std::size_t max_values = 16;  ///< elements shown of a Tensor; of larger ones the first few
  std::size_t max_nodes = 20'000;
  std::size_t max_bytes = 50'000'000;  ///< of the page
  bool numeric = true;                 ///< compare gradients with differences of the forward
};

/// A gradient compared with differences.  A Tensor of up to eight elements is checked element by
/// element (numeric is NaN for an element that is infinite or below -1e8, because it cannot be
/// moved); a larger one along a direction, in which each element moves by the sign of its gradient
/// and a fixed weight of its own.
struct GraphCheck {
  enum class Verdict { right, wrong, unchecked };
  Verdict verdict = Verdict::unchecked;
  std::vector<double> analytic = {}, numeric = {};  ///< empty if unchecked
  std::string message = {};                         ///< why it is unchecked, or a remark
};

/// The gradient that one op's backward added for one of its inputs.
struct GraphContribution {
  std::optional<std::size_t> consumer = {};  ///< the op's node; none if it is not in this graph
  std::string op;                            ///< "mul"; "backward()" for the start at the result
  std::vector<std::size_t> inputs = {};      ///< indices of the op's inputs: 0 and 1 in mul(x, x)
  Tensor gradient;                           ///< float64
  GraphCheck own = {};                       ///< compared with differences of that op's forward
};

struct GraphInput {
  std::optional<std::size_t> node = {};  ///< none for an absent input
  bool constant = false;                 ///< no gradient flows here: detach(), NoGrad, a number
  /// The op's backward ran and added nothing for this input: 0, compared with differences of its
  /// forward.
  std::optional<GraphCheck> nothing = {};
};

struct GraphNode {
  enum class Kind {
    op,
    leaf,
    constant,
    outside  ///< an op's result from before the run: its graph is not shown
  };
  Kind kind = Kind::op;
  std::string op;     ///< "matmul"; "leaf", "constant"
  std::string name;   ///< the user's name, or ""
  std::string scope;  ///< "h.0.attn"; a leaf has that of its first consumer
  Tensor value;
  std::vector<GraphInput> inputs = {};
  std::vector<std::size_t> consumers = {};
  std::optional<std::size_t> step = {};               ///< index in Graph::order
  std::vector<GraphContribution> contributions = {};  ///< in the order of arrival
  Tensor gathered = {};   ///< their sum, as the engine made it; undefined if none arrived
  Tensor gradient = {};   ///< the same after hooks, as passed to the node's own backward
  GraphCheck whole = {};  ///< compared with differences of the result
};

struct Graph {
  std::string title;
  std::vector<GraphNode> nodes;    ///< inputs before their consumers
  std::size_t root = 0;            ///< the result
  std::vector<std::size_t> order;  ///< nodes in the order in which the engine ran them
  std::size_t max_values = 16;
  std::size_t max_bytes = 50'000'000;
  /// Nodes with a check that found a wrong or missing gradient.
  std::vector<std::size_t> wrong() const;
};

/// Runs f and its backward.  GraphError if the result has no graph, was computed before f ran, or
/// has several elements and options.gradient is undefined; ValueError if f is empty, returns
/// nothing, or makes more than max_nodes nodes (before backward runs).  Errors of f are passed on.
Graph run_graph(const std::function<Tensor()>& f, const GraphOptions& options = {});

/// The page.  ValueError, before anything is written, if it has more than max_bytes.
std::string graph_html(const Graph& graph);
void write_graph_html(const std::string& path, const Graph& graph);
/// Both at once.  A path that cannot be a page's is rejected before f runs.
void write_graph_html(const std::string& path, const std::function<Tensor()>& f,
                      const GraphOptions& options = {});
/// For Graphviz: `dot -Tsvg graph.dot`.  Scopes are clusters.
std::string graph_dot(const Graph& graph);
/// Two tables: forward values, and the backward steps with each contribution.
std::string to_string(const Graph& graph);

}  // namespace xgrad::viz
