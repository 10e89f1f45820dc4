#include <xgrad/autograd/graph.hpp>

#include <algorithm>
#include <xgrad/autograd/check.hpp>

namespace xgrad {

bool any_requires_grad(std::span<const Tensor> inputs) {
  const auto requires_grad = [](const Tensor& x) { return x.defined() && x.requires_grad(); };
  return Mode::current().grad_enabled && std::ranges::any_of(inputs, requires_grad);
}

void attach(const Tensor& y, std::string_view op, const std::vector<Tensor>& inputs,
            Backward backward, Flags flags) {
  auto node = make_pooled<Node>();
  node->op = op;
  node->shape = y.shape();
  node->dtype = y.dtype();
  node->broadcasts = flags.broadcasts;
  node->backward = std::move(backward);
  node->inputs.reserve(inputs.size());
  for (const Tensor& x : inputs) {
    node->inputs.push_back(x.defined() ? x.impl().node : nullptr);
    if (const auto& input = node->inputs.back(); input != nullptr)
      node->sequence = std::max(node->sequence, input->sequence + 1);
  }
  if (flags.saves_output)
    node->output = y.impl().value;
  y.handle()->node = std::move(node);
}

// Releasing a node may drop the last reference to its inputs' nodes, which release theirs, and so
// on along the graph. The first call on a thread collects what the others drop and destroys it one
// by one.
void Node::release() noexcept {
  struct Remains {
    std::vector<std::shared_ptr<Node>> inputs;
    Backward backward;
    std::vector<std::pair<std::size_t, Hook>> hooks;
  };
  static thread_local constinit std::vector<Remains>* doomed = nullptr;
  output.reset();
  if (inputs.empty() && backward == nullptr && hooks.empty())
    return;
  Remains mine{std::exchange(inputs, {}), std::exchange(backward, nullptr),
               std::exchange(hooks, {})};
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

void Node::check_gradient(const Tensor& gradient, std::string_view giver, std::size_t i) const {
  if (gradient.dtype() != dtype)
    fail<DTypeError>("{}: gradient {} is {} but its Tensor is {}", giver, i,
                     to_string(gradient.dtype()), to_string(dtype));
  if (gradient.shape() != shape)
    fail<ShapeError>("{}: gradient {} has shape {} but its Tensor has shape {}", giver, i,
                     to_string(gradient.shape()), to_string(shape));
}

void check_outputs(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
                   const char* caller) {
  if (!gradients.empty() && gradients.size() != outputs.size())
    fail<ValueError>("{}: {} outputs but {} grad_outputs", caller, outputs.size(),
                     gradients.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    if (!y.requires_grad())
      fail<GraphError>("{}: output {} has no graph: nothing it was made of requires a gradient",
                       caller, i);
    if (!gradients.empty() && gradients[i].defined())
      y.impl().node->check_gradient(gradients[i], caller, i);
    else if (y.numel() != 1)
      fail<GraphError>(
          "{}: output {} has shape {}: only one of a single element needs no gradient of its own",
          caller, i, to_string(y.shape()));
  }
}

}  // namespace xgrad
