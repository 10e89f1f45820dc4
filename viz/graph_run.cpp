// Records the nodes of a run, and the gradients that arrive at each.

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include "../autograd/check/describe.hpp"
#include "../autograd/engine.hpp"
#include "../autograd/fail.hpp"
#include "../autograd/ops.hpp"
#include "graph.hpp"
#include "graph_check.hpp"

namespace xgrad::viz {
namespace {

using xgrad::detail::elements;

// after - before, in float64.
Tensor gain(const Tensor& after, const Tensor& before) {
  std::vector<double> gained = elements(after);
  if (before.defined()) {
    const std::vector<double> was = elements(before);
    for (std::size_t i = 0; i < gained.size(); ++i)
      gained[i] -= was[i];
  }
  return reshape(Tensor(std::move(gained)), Dims(after.shape()));
}

class Recorder final : public PassesOn {
 public:
  explicit Recorder(const GraphOptions& options) : options_(options) {
    graph_.title = options.title;
    graph_.max_values = options.max_values;
    graph_.max_bytes = options.max_bytes;
  }

  Graph run(const std::function<Tensor()>& f) {
    Tensor result;
    {
      const Trace trace;
      result = f();
      events_ = trace.events();
    }
    check<ValueError>(result.defined(), "graph: the function returned an undefined Tensor");
    const ModeGuard unobserved({false, nullptr});  // the page's own ops are not the user's
    check_result(result);
    build(result);
    backward(result);
    if (options_.numeric)
      detail::check_gradients(graph_, ops_, seed_);
    return std::move(graph_);
  }

 private:
  void check_result(const Tensor& result) const {
    if (!result.requires_grad())
      fail<GraphError>(
          "graph: the result has no graph: none of its inputs requires a gradient, or the "
          "function runs under NoGrad");
    const auto made_result = [&](const Trace::Event& e) {
      return e.output.identity().node == result.identity().node;
    };
    if (!result.is_leaf() && std::ranges::none_of(events_, made_result))
      fail<GraphError>(
          "graph: the result was computed before the function ran: compute it within the function");
    if (result.numel() != 1 && !options_.gradient.defined())
      fail<GraphError>(
          "graph: the result has shape {}: return one number, such as its sum() or a loss, or give "
          "its gradient in the options",
          to_string(result.shape()));
    if (options_.gradient.defined())
      result.identity().node->check_gradient(options_.gradient, "graph", 0);
  }

  void build(const Tensor& result) {
    for (const auto& [name, x] : options_.names) {
      if (x.defined() && x.requires_grad())
        name_of_node_.emplace(x.identity().node.get(), name);
      else if (x.defined())
        name_of_value_.emplace(x.identity().value.get(), name);
    }
    for (const Trace::Event& event : events_) {
      std::vector<GraphInput> inputs;
      for (std::size_t i = 0; i < event.inputs.size(); ++i)
        inputs.push_back(input(event, i));
      const std::size_t at = add({.op = event.op,
                                  .name = {},
                                  .scope = event.scope,
                                  .value = event.output,
                                  .inputs = std::move(inputs)});
      if (event.output.requires_grad())
        by_origin_.emplace(event.output.identity().node.get(), at);
      ops_.push_back({&event, at});
    }
    graph_.root = from_outside(result, "");
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      for (const GraphInput& in : graph_.nodes[i].inputs)
        if (in.node) {
          auto& consumers = graph_.nodes[*in.node].consumers;
          if (consumers.empty() || consumers.back() != i)
            consumers.push_back(i);
        }
  }

  GraphInput input(const Trace::Event& event, std::size_t i) {
    const Tensor& x = event.inputs[i];
    if (!x.defined())
      return {};
    const auto maker = event.made_by[i];
    const bool from_event = maker && (!x.requires_grad() ||
                                      events_[*maker].output.identity().node == x.identity().node);
    return {from_event ? ops_[*maker].node : from_outside(x, event.scope),
            !x.requires_grad() || !event.output.requires_grad()};
  }

  // The node of a Tensor that no event made, or of a result.
  std::size_t from_outside(const Tensor& x, const std::string& scope) {
    const Node* const node = x.identity().node.get();
    const void* const origin =
        node != nullptr ? static_cast<const void*>(node) : x.identity().value.get();
    if (const auto known = by_origin_.find(origin); known != by_origin_.end())
      return known->second;
    using Kind = GraphNode::Kind;
    const Kind kind = node == nullptr       ? Kind::constant
                      : node->sequence == 0 ? Kind::leaf
                                            : Kind::outside;
    const std::size_t at = add({.kind = kind,
                                .op = kind == Kind::constant ? "constant" : node->op,
                                .name = name_of(x),
                                .scope = scope,
                                .value = Saved(x).tensor()});
    by_origin_.emplace(origin, at);
    return at;
  }

  std::string name_of(const Tensor& x) const {
    if (const auto at = name_of_node_.find(x.identity().node.get());
        x.requires_grad() && at != name_of_node_.end())
      return at->second;
    const auto at = name_of_value_.find(x.identity().value.get());
    return at == name_of_value_.end() ? std::string() : at->second;
  }

  std::size_t add(GraphNode node) {
    if (graph_.nodes.size() >= options_.max_nodes)
      fail<ValueError>(
          "graph: more than {} nodes: take a shorter input, fewer steps or fewer layers, or let "
          "one part alone be the function; .max_nodes allows more",
          options_.max_nodes);
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.size() - 1;
  }

  void backward(const Tensor& result) {
    seed_ = options_.gradient.defined() ? options_.gradient : ones_like(result).detach();
    GraphNode& root = graph_.nodes[graph_.root];
    root.contributions.push_back({.op = "backward()", .gradient = gain(seed_, {})});
    root.gathered = seed_;
    const ModeGuard observed({true, this});
    leaf_gradients({result}, {.grad_outputs = {seed_}, .retain_graph = true});
  }

  void on_gradient(const Node& node, const Tensor& gradient) override {
    PassesOn::on_gradient(node, gradient);
    const auto at = by_origin_.find(&node);
    if (at == by_origin_.end())
      return;
    graph_.nodes[at->second].gradient = gradient;
    graph_.nodes[at->second].step = graph_.order.size();
    graph_.order.push_back(at->second);
  }

  void on_backward(const Node& node, std::size_t input, const Tensor& gathered) override {
    PassesOn::on_backward(node, input, gathered);
    const auto to = by_origin_.find(node.inputs[input].get());
    if (to == by_origin_.end())
      return;
    const auto from = by_origin_.find(&node);
    const auto consumer = from == by_origin_.end() ? std::nullopt : std::optional(from->second);
    GraphNode& receiver = graph_.nodes[to->second];
    auto& parts = receiver.contributions;
    // The inputs of mul(x, x) share one gradient, which arrived as one sum.
    if (last_formula_ == &node && !parts.empty() && parts.back().consumer == consumer &&
        parts.back().op == node.op && !parts.back().inputs.empty() &&
        std::ranges::any_of(parts.back().inputs, [&](std::size_t other) {
          return node.inputs[other] == node.inputs[input];
        })) {
      parts.back().inputs.push_back(input);
      return;
    }
    last_formula_ = &node;
    parts.push_back({.consumer = consumer,
                     .op = node.op,
                     .inputs = {input},
                     .gradient = gain(gathered, receiver.gathered)});
    receiver.gathered = gathered;
  }

  const GraphOptions& options_;
  Graph graph_;
  std::vector<Trace::Event> events_;
  std::vector<detail::RanOp> ops_;                          // of each event
  std::unordered_map<const void*, std::size_t> by_origin_;  // a Node, or a constant's Value
  std::unordered_map<const Node*, std::string> name_of_node_;
  std::unordered_map<const Value*, std::string> name_of_value_;
  Tensor seed_;
  const Node* last_formula_ = nullptr;
};

}  // namespace

Graph run_graph(const std::function<Tensor()>& f, const GraphOptions& options) {
  check_function(f, "graph");
  return Recorder(options).run(f);
}

std::vector<std::size_t> Graph::wrong() const {
  const auto is_wrong = [](const GraphCheck& check) {
    return check.verdict == GraphCheck::Verdict::wrong;
  };
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (is_wrong(nodes[i].whole) ||
        std::ranges::any_of(nodes[i].contributions,
                            [&](const GraphContribution& part) { return is_wrong(part.own); }))
      found.insert(i);
    for (const GraphInput& in : nodes[i].inputs)
      if (in.nothing && is_wrong(*in.nothing))
        found.insert(*in.node);
  }
  return {found.begin(), found.end()};
}

}  // namespace xgrad::viz
