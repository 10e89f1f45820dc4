#include <xgrad/autograd/graph.hpp>

#include <algorithm>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/elementwise.hpp>

namespace xgrad {

bool any_requires_grad(std::span<const Tensor> inputs) {
  const auto requires_grad = [](const Tensor& x) { return x.defined() && x.requires_grad(); };
  return Mode::current().grad_enabled && std::ranges::any_of(inputs, requires_grad);
}

// A formula that captures a Tensor holds one more handle on it: `copied` copies the formula, and if
// the count of an input's handles is larger while the copy lives, the formula holds that input.
// Another thread may copy an input at that moment and raise the count as well; so an input is
// reported only if its count grows in each of 1000 rounds.
void detail::check_captures(std::string_view op, std::span<const Tensor> inputs,
                            const std::function<void(const std::function<void()>&)>& copied) {
  std::vector<long> before(inputs.size());
  std::vector<bool> owned(inputs.size(), true);
  for (int round = 0; round < 1000 && std::ranges::find(owned, true) != owned.end(); ++round) {
    std::ranges::transform(inputs, before.begin(),
                           [](const Tensor& x) { return x.handle().use_count(); });
    copied([&] {
      for (std::size_t i = 0; i < inputs.size(); ++i)
        owned[i] = owned[i] && inputs[i].handle().use_count() > before[i];
    });
  }
  const auto first = std::ranges::find(owned, true);
  check<GraphError>(
      first == owned.end(),
      "{}: its backward formula captures the Tensor of input {}, whose value may be updated before "
      "the gradient is computed: capture [x = Saved(x)], and write x.tensor() inside",
      op, first - owned.begin());
}

void attach(const Tensor& y, std::shared_ptr<Node> node, std::string_view op,
            std::span<const Tensor> inputs, Flags flags) {
  node->op = op;
  node->shape = y.shape();
  node->dtype = y.dtype();
  node->broadcasts = flags.broadcasts;
  node->inputs.assign(inputs);
  for (const auto& input : node->inputs)
    if (input != nullptr)
      node->sequence = std::max(node->sequence, input->sequence + 1);
  if (flags.saves_output)
    node->output = y.identity().value;
  y.handle()->node = std::move(node);
}

void Edges::assign(std::span<const Tensor> inputs) {
  size_ = inputs.size();
  if (size_ > few_.size())
    many_ = std::make_unique<std::shared_ptr<Node>[]>(size_);
  std::ranges::transform(inputs, begin(),
                         [](const Tensor& x) { return x.defined() ? x.identity().node : nullptr; });
}

// Nodes that are destroyed during another node's destruction wait in an intrusive list, because an
// allocation could fail.  Saved and Identity release the nodes of a dying node's formula and hooks.
void detail::destroy(std::shared_ptr<Node> node) noexcept {
  static thread_local constinit std::shared_ptr<Node>* waiting = nullptr;
  if (node.use_count() != 1)
    return;
  if (waiting != nullptr) {
    node->next_doomed_ = std::move(*waiting);
    *waiting = std::move(node);
    return;
  }
  waiting = &node;
  while (node != nullptr) {
    const std::shared_ptr<Node> next = std::move(node);
    node = std::move(next->next_doomed_);
  }
  waiting = nullptr;
}

Node::~Node() {
  for (std::shared_ptr<Node>& input : inputs)
    detail::destroy(std::move(input));
}

void Node::free() { output.reset(); }

const std::shared_ptr<Node>& Node::input(std::size_t i) const {
  check<ValueError>(i < inputs.size(), "{}: its backward has a gradient for input {} of {}", op, i,
                    inputs.size());
  return inputs[i];
}

void Node::check_gradient(const Tensor& gradient, std::string_view giver, std::size_t i) const {
  if (gradient.dtype() != dtype)
    fail<DTypeError>("{}: gradient {} is {} but its Tensor is {}", giver, i,
                     to_string(gradient.dtype()), to_string(dtype));
  if (gradient.shape() != shape)
    fail<ShapeError>("{}: gradient {} has shape {} but its Tensor has shape {}", giver, i,
                     to_string(gradient.shape()), to_string(shape));
}

Tensor Context::output() const {
  check<GraphError>(node_->output != nullptr,
                    "{}: its backward uses the op's output, but record() was not told "
                    "{{.saves_output = true}}",
                    node_->op);
  return {node_->output, node_};
}

std::vector<std::shared_ptr<Node>> target_nodes(const std::vector<Tensor>& inputs) {
  std::vector<std::shared_ptr<Node>> nodes;
  for (const Tensor& x : inputs) {
    check<GraphError>(x.requires_grad(), "grad: input {} does not require a gradient",
                      nodes.size());
    nodes.push_back(x.identity().node);
  }
  return nodes;
}

void check_outputs(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
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
          "{}: output {} has shape {}: only one of a single element needs no gradient of its own",
          caller, i, to_string(y.shape()));
  }
}

}  // namespace xgrad

namespace xgrad::detail {

namespace {

// Forwards the ops of the derivative to the observer, and hides the nested run.
struct ForwardsOnly final : Observer {
  Observer* to;
  explicit ForwardsOnly(Observer* observer) : to(observer) {}
  void on_forward(std::string_view op, std::span<const Tensor> inputs, const Tensor& output,
                  const Forward& forward) override {
    to->on_forward(op, inputs, output, forward);
  }
  void on_backward(const Node&, std::size_t, const Tensor&) override {}
};

}  // namespace

bool all_finite(const Tensor& x) {
  return dispatch(x.dtype(),
                  [&]<class T>() { return kernels::all_finite(x.numel(), x.data<T>()); });
}

void differentiate(Context& ctx, std::span<const Saved> saved,
                   const std::function<Tensor(std::span<const Tensor>)>& composition) {
  const auto same = [](std::span<const Tensor> in) { return in[0]; };
  const auto pass = [](Context& s) { s.add(0, s.gradient()); };
  std::vector<Tensor> inputs, wanted;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    inputs.push_back(saved[i].tensor());
    if (saved[i] && ctx.needs(i)) {
      const ModeGuard unseen({true, nullptr});
      wanted.push_back(inputs.back() = record("view", {inputs.back()}, same, pass));
      places.push_back(i);
    }
  }
  Observer* const observer = Mode::current().observer;
  ForwardsOnly forwards(observer);
  const ModeGuard mode({true, observer == nullptr ? nullptr : &forwards});
  const auto gradients = grad(
      {composition(inputs)}, wanted,
      {.grad_outputs = {ctx.gradient()}, .create_graph = ctx.create_graph(), .allow_unused = true});
  for (std::size_t k = 0; k < places.size(); ++k)
    if (gradients[k].defined())
      ctx.add(places[k], gradients[k]);
}

}  // namespace xgrad::detail
