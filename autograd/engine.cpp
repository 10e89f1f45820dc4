#include "engine.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include "fail.hpp"
#include "fork.hpp"
#include "kernels/elementwise.hpp"
#include "mode.hpp"
#include "ops.hpp"

namespace xgrad {

// A call of backward(), which fills the leaves' grad(), or of grad().  All state is in the run
// and none in the nodes: an exception or a nested run leaves nothing behind, and two threads may
// differentiate graphs that share leaves.
//
// execute() is the whole algorithm.  It starts with the gradients of the outputs.  It takes the
// node with the largest sequence from the queue, calls the node's hooks with the gradient of the
// node's output, stores this gradient if it was asked for, and runs the node's formula, which adds
// to the gradients of the node's inputs.  The first gradient of an input puts it in the queue.
class Context::Run {
 public:
  Run(const GradOptions& options, const std::vector<Tensor>& outputs,
      const std::vector<std::shared_ptr<Node>>& targets, const LeafSink& sink = {},
      bool early = false)
      : create_graph(options.create_graph),
        retain_graph_(options.retain_graph || options.create_graph),
        all_leaves_(targets.empty()),
        sink_(sink),
        mode_({create_graph, create_graph ? observer_ : nullptr}) {
    for (const auto& target : targets)
      results_.emplace(target.get(), Tensor());
    if (!all_leaves_ || early)
      explore(outputs);
  }

  const bool create_graph;
  bool wants(const std::shared_ptr<Node>& node) const {
    return node != nullptr && (all_leaves_ || wanted_.contains(node.get()));
  }

  bool wants_any(const detail::Edges& edges) const {
    return std::ranges::any_of(edges, [this](const auto& node) { return wants(node); });
  }

  // The sum of the gradients that have arrived for a node's output.  The first call for a node
  // returns an undefined sum and puts the node into the queue.
  Tensor& gradient_sum(const std::shared_ptr<Node>& node) {
    const auto [entry, is_new] = gradients_.try_emplace(node.get());
    if (is_new) {
      const auto use = first_use_.find(node.get());
      queue_.push_back(
          {use == first_use_.end() ? node->sequence : use->second - 1, arrivals_++, node});
      std::push_heap(queue_.begin(), queue_.end());
    }
    return entry->second;
  }

  void execute(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool given = i < gradients.size() && gradients[i].defined();
      accumulate(gradient_sum(outputs[i].identity().node),
                 given ? gradients[i] : ones_like(outputs[i]));
    }
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end());
      const std::shared_ptr<Node> node = std::move(queue_.back().node);
      queue_.pop_back();
      Tensor gradient = std::move(gradients_.extract(node.get()).mapped());
      const auto hooks = node->hooks;  // a copy: a hook may remove itself or add others
      for (const auto& [id, hook] : hooks)
        if (const Tensor replacement = hook(gradient); replacement.defined())
          node->check_gradient(gradient = replacement, "hook on " + node->op, 0);
      if (observer_ != nullptr)
        observer_->on_gradient(*node, gradient);
      detail::take_own_handle(
          gradient);  // a hook or observer may change the old handle's Tensor later
      store(*node, gradient);
      if (node->sequence > 0 && (all_leaves_ || wants_any(node->inputs)))
        run_formula(node, std::move(gradient));
    }
  }

  Tensor result(const std::shared_ptr<Node>& target) const {
    return detail::with_own_handle(results_.at(target.get()));
  }

 private:
  // The queue is a heap.  Its top has the largest sequence and, among equals, arrived first:
  // gradients are then summed in the same order in every run.
  struct Task {
    std::uint64_t sequence, arrival;
    std::shared_ptr<Node> node;
    bool operator<(const Task& other) const {
      return sequence != other.sequence ? sequence < other.sequence : arrival > other.arrival;
    }
  };

  // Stores the gradient of a target, or of a leaf whose node this still is.
  void store(const Node& node, const Tensor& gradient) {
    if (const auto result = results_.find(&node); result != results_.end())
      result->second = detail::with_own_handle(gradient);
    else if (auto identity = node.leaf.lock();
             all_leaves_ && identity && identity->node.get() == &node)
      sink_(std::move(identity), detail::with_own_handle(gradient));
  }

  void run_formula(const std::shared_ptr<Node>& node, Tensor gradient) {
    Context ctx(*this, node, std::move(gradient));
    const detail::Timed timed(*node);
    check<GraphError>(node->backward(ctx),
                      "backward: the graph behind '{}' was freed by an earlier run: compute the "
                      "loss anew in each step; retain_graph keeps a graph for a second run",
                      node->op);
    ctx.add_waiting();
    if (observer_ != nullptr)
      for (std::size_t i = 0; i < node->inputs.size(); ++i)
        if (const auto sum = gradients_.find(node->inputs[i].get()); sum != gradients_.end())
          observer_->on_backward(*node, i,
                                 {sum->second.identity().value, sum->second.identity().node});
    if (!retain_graph_)
      node->free();
  }

  // A node is wanted if it is a target or has a wanted input: nodes are visited by rising sequence.
  // A leaf comes right after its first user, the last to run, and not behind all other nodes.
  void explore(const std::vector<Tensor>& outputs) {
    std::vector<const Node*> found;
    std::unordered_set<const Node*> seen{nullptr};
    const auto discover = [&](const std::shared_ptr<Node>& node) {
      if (seen.insert(node.get()).second)
        found.push_back(node.get());
    };
    for (const Tensor& y : outputs)
      discover(y.identity().node);
    for (std::size_t i = 0; i < found.size(); ++i)
      std::ranges::for_each(found[i]->inputs, discover);
    std::ranges::sort(found, {}, &Node::sequence);
    for (const Node* node : found) {
      if (results_.contains(node) || wants_any(node->inputs))
        wanted_.insert(node);
      for (const auto& input : node->inputs)
        if (all_leaves_ && input != nullptr && input->sequence == 0)
          first_use_.try_emplace(input.get(), node->sequence);
    }
  }

  detail::NestedRun nested_;
  bool retain_graph_, all_leaves_;
  LeafSink sink_;  // takes the gradients of leaves, if there are no targets
  Observer* observer_ = Mode::current().observer;
  ModeGuard mode_;
  std::uint64_t arrivals_ = 0;                         // so far
  std::vector<Task> queue_;                            // a heap of the nodes that have not run
  std::unordered_map<const Node*, Tensor> gradients_;  // of the nodes in the queue
  std::unordered_map<const Node*, Tensor> results_;    // of the targets
  std::unordered_set<const Node*> wanted_;             // nodes from which a path leads to a target
  std::unordered_map<const Node*, std::uint64_t> first_use_;  // of leaves: its sequence
};

bool Context::needs(std::size_t i) const { return run_.wants(node_->input(i)); }

bool Context::create_graph() const { return run_.create_graph; }

void Context::add(std::size_t i, Tensor gradient) {
  if (!needs(i))
    return;
  const std::shared_ptr<Node>& input = node_->inputs[i];
  if (node_->broadcasts && gradient.shape() != input->shape)
    gradient = sum_to(gradient, input->shape);
  input->check_gradient(gradient, node_->op, i);
  Tensor& sum = run_.gradient_sum(input);
  if (waiting_.empty())
    return accumulate(sum, std::move(gradient));
  waiting_.emplace_back(i, std::move(gradient));  // after the formula's writes to buffers
}

void Context::add_waiting() {
  for (auto& [i, gradient] : waiting_)
    accumulate(run_.gradient_sum(node_->inputs[i]), std::move(gradient));
}

template <class T>
GradientBuffer<T> Context::buffer(std::size_t i) {
  constexpr const char* rule = "{}: its backward asks for the buffer of input {}, {}";
  check<GraphError>(needs(i), rule, node_->op, i, "which needs no gradient: ask needs() first");
  check<GraphError>(!create_graph(), rule, node_->op, i,
                    "under create_graph, where gradients are Tensors: add() them");
  const std::shared_ptr<Node>& input = node_->inputs[i];
  if (input->dtype != dtype_of<T>)
    fail<DTypeError>("{}: its backward asks for a {} buffer of input {}, which is {}", node_->op,
                     to_string(dtype_of<T>), i, to_string(input->dtype));
  Tensor& sum = run_.gradient_sum(input);
  if (sum.defined() && !detail::is_sole_owner(sum))
    sum = copy_of(sum.data<T>(), input->shape);
  const Tensor& to =
      sum.defined() ? sum : waiting_.emplace_back(i, empty_array<T>(input->shape)).second;
  return {to.identity().value->writable_data<T>(), sum.defined() ? T(1) : T(0)};
}
template GradientBuffer<float> Context::buffer<float>(std::size_t);
template GradientBuffer<double> Context::buffer<double>(std::size_t);

// The nodes of the inputs of grad(); GraphError if one requires no gradient.
static std::vector<std::shared_ptr<Node>> target_nodes(const std::vector<Tensor>& inputs) {
  std::vector<std::shared_ptr<Node>> nodes;
  for (const Tensor& x : inputs) {
    check<GraphError>(x.requires_grad(), "grad: input {} does not require a gradient",
                      nodes.size());
    nodes.push_back(x.identity().node);
  }
  return nodes;
}

// Throws unless gradients can flow from these outputs; `gradients` are GradOptions::grad_outputs.
static void check_outputs(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
                          const char* caller) {
  if (!gradients.empty() && gradients.size() != outputs.size())
    fail<ValueError>("{}: {} outputs but {} grad_outputs", caller, outputs.size(),
                     gradients.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    if (!y.requires_grad())
      fail<GraphError>("{}: output {} has no graph: none of its inputs requires a gradient", caller,
                       i);
    if (!gradients.empty() && gradients[i].defined())
      y.identity().node->check_gradient(gradients[i], caller, i);
    else if (y.numel() != 1)
      fail<GraphError>(
          "{}: output {} has shape {}: pass its gradient, or make it one number, as with sum()",
          caller, i, to_string(y.shape()));
  }
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options) {
  const auto targets = target_nodes(inputs);  // before hooks run, which may change the inputs
  std::vector<Tensor> results;
  if (targets.empty())
    return results;
  check_outputs(outputs, options.grad_outputs, "grad");
  Context::Run run(options, outputs, targets);
  const auto check_used = [&](std::size_t i, bool used) {
    if (!used && !options.allow_unused)
      fail<GraphError>("grad: no output uses input {} of shape {}; allow_unused permits it", i,
                       to_string(targets[i]->shape));
  };
  for (std::size_t i = 0; i < targets.size(); ++i)  // before anything runs and is freed
    check_used(i, run.wants(targets[i]));
  run.execute(outputs, options.grad_outputs);
  for (std::size_t i = 0; i < targets.size(); ++i)
    check_used(i, results.emplace_back(run.result(targets[i])).defined());
  return results;
}

void leaf_gradients(const std::vector<Tensor>& outputs, const GradOptions& options,
                    const LeafSink& sink) {
  check_outputs(outputs, options.grad_outputs, "backward");
  Context::Run(options, outputs, {}, sink, true).execute(outputs, options.grad_outputs);
}

LeafGradients leaf_gradients(const std::vector<Tensor>& outputs, const GradOptions& options) {
  check_outputs(outputs, options.grad_outputs, "backward");
  LeafGradients all;
  const auto add = [&all](const auto& leaf, const Tensor& x) { all.emplace_back(leaf, x); };
  Context::Run(options, outputs, {}, add).execute(outputs, options.grad_outputs);
  return all;
}

void backward(const std::vector<Tensor>& outputs, const GradOptions& options) {
  // The gradients are complete before they are added: an exception up to here changes nothing.
  accumulate_grads(leaf_gradients(outputs, options), options.create_graph);
}

// ---- sums of gradients ----

// If a process forks during a sum, its child's sum stays unfinished.
static std::mutex mutex;
static const detail::RenewedInChild<mutex> renewed;

static void add_in_place(const Value& sum, const Tensor& gradient) {
  dispatch(sum.dtype, [&]<class T>() {
    kernels::add_to(sum.writable_data<T>(), gradient.data<T>(), gradient.numel());
  });
}

static bool owns_alone(const std::shared_ptr<Tensor::Identity>& x) {
  return detail::is_only_handle(x) && detail::is_sole_owner(x->value);
}

bool detail::is_sole_owner(const Tensor& x) { return owns_alone(x.handle()); }

void detail::take_own_handle(Tensor& x) {
  if (!x.defined())
    return;
  const auto& [value, node, grad, frozen] = x.identity();
  if (!detail::is_only_handle(x.handle()) || node != nullptr || grad != nullptr ||
      frozen != nullptr)
    x = {value, node};
}

void accumulate(Tensor& sum, Tensor gradient) {
  const bool graph = Mode::current().grad_enabled;
  if (sum.defined() && !graph && detail::is_sole_owner(sum))
    add_in_place(*sum.identity().value, gradient);
  else if (sum.defined())
    sum = add(sum, gradient);
  else if (gradient.requires_grad() && !graph)
    sum = gradient.detach();
  else
    detail::take_own_handle(sum = std::move(gradient));
}

void accumulate_grads(const LeafGradients& gradients, bool graph) {
  const ModeGuard mode({graph, graph ? Mode::current().observer : nullptr});
  const std::size_t n = gradients.size();
  // After its gradient was stored, a hook may have made the Tensor a constant or converted it.
  const auto left_alone = [&gradients](std::size_t i) {
    const auto& [tensor, gradient] = gradients[i];
    return tensor->node == nullptr || tensor->value->dtype != gradient.dtype();
  };
  std::vector<std::shared_ptr<Tensor::Identity>> before(n),
      after(n);  // both null: added to in place
  for (std::unique_lock lock(mutex);; lock.lock()) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto& grad = gradients[i].first->grad;
      const bool in_place = !graph && grad != nullptr && grad->node == nullptr &&
                            grad->value->dtype == gradients[i].second.dtype() && owns_alone(grad);
      before[i] = in_place ? nullptr : grad;
    }
    if (graph)  // add() may call an observer, which may do anything
      lock.unlock();
    for (std::size_t i = 0; i < n; ++i) {
      const auto& [tensor, gradient] = gradients[i];
      if (left_alone(i))
        continue;
      if (Tensor sum(before[i]); sum.defined() || graph || tensor->grad == nullptr) {
        accumulate(sum, gradient);
        after[i] = sum.handle();
      }
    }
    if (graph) {
      lock.lock();
      bool changed = false;  // by another thread or by the observer: then the sums are outdated
      for (std::size_t i = 0; i < n; ++i)
        changed = changed || gradients[i].first->grad != before[i];
      if (changed) {
        lock.unlock();
        continue;
      }
    }
    // From here on nothing throws.  Old gradients die after the lock is released.
    for (std::size_t i = 0; i < n; ++i)
      if (after[i] != nullptr)
        gradients[i].first->grad = std::move(after[i]);
      else if (!left_alone(i))
        add_in_place(*gradients[i].first->grad->value, gradients[i].second);
    return;
  }
}

}  // namespace xgrad
