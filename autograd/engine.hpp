#pragma once
// The engine: how gradients flow back through a graph.  READ THIS FIRST, with engine.cpp; graph.hpp
// has the nodes.
//
// backward() and grad() start from the outputs and give each node the complete gradient of its
// output.  The node's formula reads that gradient from a Context and adds the gradients of the op's
// inputs to the same Context.  Nodes are taken by falling sequence: all users of a value come
// before the node that made it, so its gradient is complete when its turn comes.

#include <xgrad/autograd/graph.hpp>

namespace xgrad {

/// Options of grad() and backward(); the names are PyTorch's.
struct GradOptions {
  std::vector<Tensor> grad_outputs = {};  ///< one for each output; outputs of one element need none
  bool create_graph = false;              ///< the gradients can be differentiated again
  bool retain_graph = false;  ///< keep the graph for another run; create_graph implies it
  bool allow_unused = false;  ///< grad(): an input that no output uses gets an undefined gradient
};

/// The gradients of sum(outputs * grad_outputs) with respect to each input, leaf or not.  Touches
/// no grad() of any Tensor (torch.autograd.grad).  GraphError if an output has no graph, the graph
/// was freed, an input is unused, or 500 runs of this thread are within each other.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {});

/// A Tensor whose grad() is filled, and what is to be added to it.
using LeafGradients = std::vector<std::pair<std::shared_ptr<Tensor::Impl>, Tensor>>;

/// What backward() would add to the grad() of all leaves; adds nothing.
LeafGradients leaf_gradients(const std::vector<Tensor>& outputs, const GradOptions& options = {});

/// Adds the gradients of sum(outputs * grad_outputs) to the grad() of all leaves
/// (torch.autograd.backward).  If anything throws on the way, no grad() has changed.
void backward(const std::vector<Tensor>& outputs, const GradOptions& options = {});

}  // namespace xgrad
