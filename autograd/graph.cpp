#include <xgrad/autograd/graph.hpp>

#include <algorithm>
#include <xgrad/autograd/fail.hpp>

namespace xgrad {

bool any_requires_grad(std::span<const Tensor> inputs) {
  const auto requires_grad = [](const Tensor& x) { return x.defined() && x.requires_grad(); };
  return Mode::current().grad_enabled && std::ranges::any_of(inputs, requires_grad);
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
    node->output = y.impl().value;
  y.handle()->node = std::move(node);
}

void Edges::assign(std::span<const Tensor> inputs) {
  size_ = inputs.size();
  if (size_ > few_.size())
    many_ = std::make_unique<std::shared_ptr<Node>[]>(size_);
  std::ranges::transform(inputs, begin(),
                         [](const Tensor& x) { return x.defined() ? x.impl().node : nullptr; });
}

// The first node that dies on a thread collects the inputs' nodes that die with it, and theirs, and
// destroys them one by one. Its formula is gone by now: whatever node that held, an edge holds too.
// They are a list by themselves, for there may be no memory for another.
Node::~Node() {
  static thread_local constinit std::shared_ptr<Node>* doomed = nullptr;
  const auto collect = [this] {
    for (std::shared_ptr<Node>& input : inputs)
      if (std::shared_ptr<Node> mine = std::move(input); mine.use_count() == 1) {
        mine->next_doomed_ = std::move(*doomed);
        *doomed = std::move(mine);
      }
  };
  if (doomed != nullptr) {
    collect();
    return;
  }
  std::shared_ptr<Node> list;
  doomed = &list;
  for (collect(); list != nullptr;) {
    const std::shared_ptr<Node> next = std::move(list);
    list = std::move(next->next_doomed_);
  }
  doomed = nullptr;
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
