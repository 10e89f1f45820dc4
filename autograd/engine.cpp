#include <xgrad/autograd/engine.hpp>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <xgrad/autograd/check.hpp>
#include <xgrad/autograd/kernels/elementwise.hpp>
#include <xgrad/autograd/ops.hpp>

namespace xgrad {

// ---- recording ------------------------------------------------------------------------------------------------------

bool any_requires_grad(std::span<const Tensor> inputs) {
  return Mode::current().grad_enabled && std::ranges::any_of(inputs, [](const Tensor& x) {
           return x.defined() && x.requires_grad();
         });
}

Tensor attach(Tensor value, std::string_view op, const std::vector<Tensor>& inputs, Backward backward,
              Flags flags) {
  auto node = std::make_shared<Node>();
  node->op = op;
  node->shape = value.shape();
  node->dtype = value.dtype();
  node->broadcasts = flags.broadcasts;
  node->backward = std::move(backward);
  node->inputs.reserve(inputs.size());
  for (const Tensor& x : inputs) {
    node->inputs.push_back(x.defined() ? x.impl().node : nullptr);
    if (const auto& input = node->inputs.back(); input != nullptr)
      node->sequence = std::max(node->sequence, input->sequence + 1);
  }
  if (flags.saves_output)
    node->output = value.impl().value;
  return Tensor(value.impl().value, std::move(node));
}

// Releasing a node may drop the last reference to its inputs' nodes, which release theirs, and so on along the graph.
// The first call on a thread collects what the others drop and destroys it one by one.
void Node::release() noexcept {
  struct Remains {
    std::vector<std::shared_ptr<Node>> inputs;
    Backward backward;
    decltype(Node::hooks) hooks;
  };
  static thread_local constinit std::vector<Remains>* doomed = nullptr;
  output.reset();
  if (inputs.empty() && backward == nullptr && hooks.empty())
    return;
  Remains mine{std::exchange(inputs, {}), std::exchange(backward, nullptr), std::exchange(hooks, {})};
  if (doomed != nullptr) {
    doomed->push_back(std::move(mine));
    return;
  }
  std::vector<Remains> list;
  doomed = &list;
  for (list.push_back(std::move(mine)); !list.empty();) {
    const Remains next = std::move(list.back());
    list.pop_back();
  }
  doomed = nullptr;
}

// ---- one backward run -----------------------------------------------------------------------------------------------

// Everything that is in flight belongs to the run, not to the nodes: an exception or a run within a run leaves nothing
// behind, and two threads may share leaves.
class Sink::Run {
 public:
  // Without targets, gradients go to every leaf; with targets, only along the paths that lead to them.
  Run(const GradOptions& options, std::span<const Tensor> outputs, std::span<const Tensor> targets)
      : create_graph(options.create_graph), retain_graph_(options.retain_graph || options.create_graph) {
    for (const Tensor& x : targets)
      targets_.emplace(x.impl().node.get(), Tensor());
    if (!targets.empty())
      find_wanted(outputs);
  }

  bool wants(const Node* node) const {
    return node != nullptr && (targets_.empty() || wanted_.contains(node));
  }

  // The gradient gathered so far for a node's output; a node gets its place in the queue when its first one comes.
  Saved& slot(const std::shared_ptr<Node>& node) {
    const auto [at, is_new] = gradients_.try_emplace(node.get());
    if (is_new) {
      queue_.push_back({node->sequence, arrivals_++, node});
      std::push_heap(queue_.begin(), queue_.end());
    }
    return at->second;
  }

  void add(const std::shared_ptr<Node>& node, const Tensor& gradient) {
    accumulate(slot(node), {gradient.impl().value, create_graph ? gradient.impl().node : nullptr});
  }

  void execute() {
    const ModeGuard mode({create_graph, create_graph ? Mode::current().observer : nullptr});
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end());
      const std::shared_ptr<Node> node = std::move(queue_.back().node);
      queue_.pop_back();
      Tensor gradient = gradients_.extract(node.get()).mapped().tensor();
      for (const auto& [id, hook] : node->hooks)
        replace(gradient, hook(gradient), *node);
      visit(node, std::move(gradient));
    }
    for (auto& [impl, gradient] : kept_)  // only now: an exception before this has changed nothing
      keep(*impl, gradient);
  }

  Tensor result(const Tensor& target) const { return targets_.at(target.impl().node.get()); }

  const bool create_graph;

 private:
  struct Task {
    std::uint64_t sequence, arrival;
    std::shared_ptr<Node> node;
    // The largest sequence comes first and, so that sums are the same in every run, of equals the first to arrive.
    bool operator<(const Task& other) const {
      return sequence != other.sequence ? sequence < other.sequence : arrival > other.arrival;
    }
  };

  void visit(const std::shared_ptr<Node>& node, Tensor gradient) {
    if (targets_.empty()) {
      if (auto impl = node->keeper.lock())
        kept_.emplace_back(std::move(impl), gradient);
    } else if (const auto target = targets_.find(node.get()); target != targets_.end()) {
      target->second = gradient;
    }
    const auto wanted = [this](const auto& input) { return wants(input.get()); };
    if (node->sequence == 0 || (!targets_.empty() && std::ranges::none_of(node->inputs, wanted)))
      return;
    if (node->backward == nullptr)
      fail<GraphError>("backward: the graph behind '{}' was freed by an earlier backward(); keep it with retain_graph",
                       node->op);
    Sink sink(*this, node, std::move(gradient));
    node->backward(sink);
    if (observer_ != nullptr)
      tell_observer(*node);
    if (!retain_graph_)
      node->release();
  }

  void tell_observer(const Node& node) const {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const auto at = gradients_.find(node.inputs[i].get()); at != gradients_.end())
        observer_->on_backward(node, i, at->second.tensor());
  }

  static void accumulate(Saved& sum, Saved gradient) {
    if (!sum)
      sum = std::move(gradient);
    else if (Mode::current().grad_enabled || sum.value.use_count() > 1)
      sum = xgrad::add(sum.tensor(), gradient.tensor());
    else
      kernels::add_to(const_cast<Storage&>(*sum.value), *gradient.value);  // ours alone: nobody sees it change
  }

  void keep(Tensor::Impl& impl, const Tensor& gradient) const {
    if (impl.grad == nullptr) {
      impl.grad = Tensor(gradient.impl().value, gradient.impl().node).handle();
      return;
    }
    Saved sum{std::move(impl.grad->value), std::move(impl.grad->node)};
    accumulate(sum, gradient);
    if (create_graph)
      impl.grad = sum.tensor().handle();  // who holds the old one keeps it, with its graph
    else
      *impl.grad = {std::move(sum.value), std::move(sum.node), nullptr};
  }

  static void replace(Tensor& gradient, const Tensor& by, const Node& node) {
    if (!by.defined())
      return;
    if (by.shape() != node.shape || by.dtype() != node.dtype)
      fail<ShapeError>("hook on '{}': returned a {} gradient of shape {} for a {} Tensor of shape {}", node.op,
                       to_string(by.dtype()), to_string(by.shape()), to_string(node.dtype), to_string(node.shape));
    gradient = by;
  }

  // By rising sequence, a node is wanted if it is a target or one of its inputs is wanted.
  void find_wanted(std::span<const Tensor> outputs) {
    std::vector<const Node*> found;
    std::unordered_set<const Node*> seen;
    const auto discover = [&](const Node* node) {
      if (node != nullptr && seen.insert(node).second)
        found.push_back(node);
    };
    for (const Tensor& y : outputs)
      discover(y.impl().node.get());
    for (std::size_t i = 0; i < found.size(); ++i)
      for (const auto& input : found[i]->inputs)
        discover(input.get());
    std::ranges::sort(found, {}, &Node::sequence);
    const auto wanted = [this](const auto& input) { return wanted_.contains(input.get()); };
    for (const Node* node : found)
      if (targets_.contains(node) || std::ranges::any_of(node->inputs, wanted))
        wanted_.insert(node);
  }

  bool retain_graph_;
  Observer* observer_ = Mode::current().observer;
  std::uint64_t arrivals_ = 0;
  std::vector<Task> queue_;  // a heap
  std::unordered_map<const Node*, Saved> gradients_;
  std::unordered_map<const Node*, Tensor> targets_;
  std::unordered_set<const Node*> wanted_;
  std::vector<std::pair<std::shared_ptr<Tensor::Impl>, Tensor>> kept_;
};

// ---- what a formula sees of it ----------------------------------------------------------------------------------------

bool Sink::needs(std::size_t i) const { return run_.wants(node_->inputs.at(i).get()); }

bool Sink::create_graph() const { return run_.create_graph; }

void Sink::add(std::size_t i, const Tensor& gradient) {
  if (!needs(i))
    return;
  const auto& input = node_->inputs[i];
  if (gradient.dtype() != input->dtype)
    fail<DTypeError>("{}: its backward gave a {} gradient for input {}, which is {}", node_->op,
                     to_string(gradient.dtype()), i, to_string(input->dtype));
  if (gradient.shape() == input->shape)
    return run_.add(input, gradient);
  if (!node_->broadcasts)
    fail<ShapeError>("{}: its backward gave a gradient of shape {} for input {}, which has shape {}", node_->op,
                     to_string(gradient.shape()), i, to_string(input->shape));
  run_.add(input, sum_to(gradient, input->shape));
}

template <class T>
Buffer<T> Sink::buffer(std::size_t i) {
  Saved& sum = run_.slot(node_->inputs.at(i));
  const T beta = sum ? 1 : 0;
  if (!sum)
    sum.value = std::make_shared<const Storage>(empty_array<T>(node_->inputs[i]->shape));
  else if (sum.value.use_count() > 1)
    sum.value = std::make_shared<const Storage>(*sum.value);
  return {const_cast<Storage&>(*sum.value).get<T>().data(), beta};
}
template Buffer<float> Sink::buffer<float>(std::size_t);
template Buffer<double> Sink::buffer<double>(std::size_t);

// ---- starting a run ---------------------------------------------------------------------------------------------------

static void run_from(Sink::Run& run, const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
                     const char* caller) {
  if (!gradients.empty() && gradients.size() != outputs.size())
    fail<ValueError>("{}: {} outputs but {} grad_outputs", caller, outputs.size(), gradients.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    if (!y.requires_grad())
      fail<GraphError>("{}: output {} has no graph: nothing that made it requires a gradient", caller, i);
    const bool given = !gradients.empty() && gradients[i].defined();
    if (!given && y.numel() != 1)
      fail<GraphError>("{}: output {} has shape {}: only an output of one element needs no grad_outputs", caller, i,
                       to_string(y.shape()));
    if (given && (gradients[i].shape() != y.shape() || gradients[i].dtype() != y.dtype()))
      fail<ShapeError>("{}: grad_outputs {} is {} {} but its output is {} {}", caller, i,
                       to_string(gradients[i].dtype()), to_string(gradients[i].shape()), to_string(y.dtype()),
                       to_string(y.shape()));
    run.add(y.impl().node, given ? gradients[i] : ones_like(y));
  }
  run.execute();
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    check<GraphError>(inputs[i].requires_grad(), "grad: input {} does not require a gradient", i);
  Sink::Run run(options, outputs, inputs);
  if (!inputs.empty())
    run_from(run, outputs, options.grad_outputs, "grad");
  std::vector<Tensor> results;
  for (const Tensor& x : inputs) {
    results.push_back(run.result(x));
    if (!results.back().defined() && !options.allow_unused)
      fail<GraphError>("grad: input {} of shape {} was not used for the outputs; allow_unused permits it",
                       results.size() - 1, to_string(x.shape()));
  }
  return results;
}

void backward(const std::vector<Tensor>& outputs, const GradOptions& options) {
  Sink::Run run(options, outputs, {});
  run_from(run, outputs, options.grad_outputs, "backward");
}

}  // namespace xgrad
