#include "recompute.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include "engine.hpp"
#include "fail.hpp"
#include "random.hpp"

namespace xgrad {
namespace {

using Inputs = std::vector<Tensor>;
using Function = std::function<Tensor(const Inputs&)>;

// Records the nodes that ops make.
struct NodeRecorder final : Observer {
  static inline thread_local constinit NodeRecorder* innermost = nullptr;
  std::unordered_set<const Node*> made;
  NodeRecorder* const outer = std::exchange(innermost, this);
  ~NodeRecorder() override { innermost = outer; }
  void on_forward(std::string_view, std::span<const Tensor>, const Tensor& y,
                  const Forward&) override {
    made.insert(y.identity().node.get());
  }
};

struct PassOn {
  void operator()(Context& ctx) const { ctx.add(0, ctx.gradient()); }
};

// A handle on a node alone, as an edge or as a target of grad().
Tensor handle_on(std::shared_ptr<Node> node) { return {nullptr, std::move(node)}; }

// A call of f, and the graph that it made.
struct Call {
  Tensor y;
  std::vector<std::shared_ptr<Node>> made;  // by rising sequence
  std::vector<std::shared_ptr<Node>> from;  // its inputs: leaves and results of other ops

  Call(const Function& f, const Inputs& inputs, bool autocast) {
    NodeRecorder recorder;
    const ModeGuard mode({true, &recorder, false, autocast});
    const auto same = [](std::span<const Tensor> in) { return in[0]; };
    y = record("checkpoint", {f(inputs)}, same, PassOn{});  // never an input itself
    std::unordered_set<const Node*> seen{nullptr};
    std::vector<std::shared_ptr<Node>> found;
    const auto discover = [&](const std::shared_ptr<Node>& node) {
      if (seen.insert(node.get()).second)
        found.push_back(node);
    };
    discover(y.identity().node);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::shared_ptr<Node> node = found[i];
      const bool own = recorder.made.contains(node.get());
      if (own)
        made.push_back(node);
      else if (node->sequence > 0 || node->leaf.lock() != nullptr)  // skips dead leaves of f's own
        from.push_back(node);
      if (own)
        std::ranges::for_each(node->inputs, discover);
    }
    std::ranges::stable_sort(made, {}, [](const auto& node) { return node->sequence; });
  }

  // Replaces this call's edges to `from` by edges to stand-in nodes, and returns those: gradients
  // stop there.  The stand-ins lead on to `from` under create_graph alone, for derivatives of the
  // gradient; otherwise a run would search the whole graph before them for its targets.
  Inputs cut(bool create_graph) const {
    Inputs ends;
    std::unordered_map<const Node*, std::shared_ptr<Node>> stand_ins;
    for (const auto& node : from) {
      const auto end = detail::make_pooled<detail::OpNode<PassOn>>(PassOn{});
      end->op = "view";
      end->shape = node->shape;
      end->dtype = node->dtype;
      if (create_graph)
        end->inputs.assign(std::array{handle_on(node)});
      end->sequence = node->sequence + 1;
      stand_ins.emplace(node.get(), end);
      ends.push_back(handle_on(end));
    }
    for (const auto& node : made)
      for (auto& input : node->inputs) {
        if (const auto found = stand_ins.find(input.get()); found != stand_ins.end())
          input = found->second;
        if (input != nullptr)
          node->sequence = std::max(node->sequence, input->sequence + 1);
      }
    return ends;
  }
};

// The value of a leaf; null for any other node.
std::shared_ptr<const Value> leaf_value(const Node& node) {
  const auto leaf = node.sequence == 0 ? node.leaf.lock() : nullptr;
  return leaf != nullptr ? leaf->value : nullptr;
}

// The backward formula: calls f again and differentiates the call.
struct RecomputeFormula {
  Function f;
  std::vector<Saved> inputs;
  std::vector<const Node*> from = {};                     // the edges of the op
  std::vector<std::shared_ptr<const Value>> leaves = {};  // null for a node that is no leaf
  std::optional<Generator> drew_from = {};
  bool in_shard = false;  // f drew within a shard
  bool autocast = Mode::current().autocast;

  void operator()(Context& ctx) const {
    if (drew_from && !in_shard)
      detail::check_draws();  // a shard would draw only a part of the whole batch's numbers
    const Call call = call_again();
    if (call.y.shape() != ctx.gradient().shape())
      fail<GraphError>("checkpoint: f returned {} when it was called again, and {} before",
                       to_string(call.y.shape()), to_string(ctx.gradient().shape()));
    const auto same = [](const std::shared_ptr<Node>& a, const Node* b) { return a.get() == b; };
    check<GraphError>(std::ranges::equal(call.from, from, same),
                      "checkpoint: f used other Tensors when it was called again in the backward "
                      "run: does it depend on a state that has changed?");
    for (std::size_t i = 0; i < from.size(); ++i)
      if (leaf_value(*from[i]) != leaves[i])
        fail<GraphError>(
            "checkpoint: a leaf that f uses, of shape {}, has been changed since f was "
            "called: call backward() before the optimizer's step",
            to_string(from[i]->shape));
    const Inputs ends = call.cut(ctx.create_graph());
    Inputs wanted;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < ends.size(); ++i)
      if (ctx.needs(i)) {
        wanted.push_back(ends[i]);
        places.push_back(i);
      }
    const auto gradients = grad(
        {call.y}, wanted, {.grad_outputs = {ctx.gradient()}, .create_graph = ctx.create_graph()});
    for (std::size_t k = 0; k < places.size(); ++k)
      ctx.add(places[k], gradients[k]);
  }

 private:
  Call call_again() const {
    std::optional<detail::SameDraws> after;
    if (drew_from) {
      after.emplace();
      default_generator() = *drew_from;
    }
    Inputs values;
    for (const Saved& x : inputs)
      values.push_back(x.tensor());
    return {f, values, autocast};
  }
};

}  // namespace

Tensor checkpoint(const Function& f, const Inputs& inputs) {
  check_function(f, "checkpoint");
  const Mode mode = Mode::current();
  // (No dynamic_cast: a program without RTTI may have observers of its own.)
  auto* const outer = mode.observer == NodeRecorder::innermost ? NodeRecorder::innermost : nullptr;
  if (!mode.grad_enabled || mode.decompose || (mode.observer != nullptr && outer == nullptr))
    return f(inputs);
  const Generator before = default_generator();
  const Call call(f, inputs, mode.autocast);
  Tensor y = call.y.detach();
  if (call.from.empty())
    return y;
  RecomputeFormula formula{f, {inputs.begin(), inputs.end()}};
  Inputs edges;
  for (const auto& node : call.from) {
    edges.push_back(handle_on(node));
    formula.from.push_back(node.get());
    formula.leaves.push_back(leaf_value(*node));
  }
  if (default_generator() != before) {
    formula.drew_from = before;
    formula.in_shard = detail::ShardDraws::current() != nullptr;
  }
  detail::attach(y, detail::make_pooled<detail::OpNode<RecomputeFormula>>(std::move(formula)),
                 "checkpoint", edges, {});
  if (outer != nullptr)
    outer->made.insert(y.identity().node.get());
  return y;
}

}  // namespace xgrad
