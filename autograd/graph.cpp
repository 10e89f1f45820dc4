#include "graph.hpp"

#include "fail.hpp"

namespace xgrad {

bool detail::any_requires_grad(std::span<const Tensor> inputs) {
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

void detail::attach(const Tensor& y, std::shared_ptr<Node> node, std::string_view op,
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

void detail::Edges::assign(std::span<const Tensor> inputs) {
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
  check<ValueError>(i < inputs.size(),
                    "{}: its backward gives input {} a gradient; the op's inputs are 0 to {}", op,
                    i, static_cast<std::ptrdiff_t>(inputs.size()) - 1);
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

}  // namespace xgrad
