#pragma once
// The engine: how gradients flow back through a graph.  READ THIS FIRST, with engine.cpp; graph.hpp
// has the nodes.
//
// backward() and grad() start from the outputs and give each node the complete gradient of its
// output.  The node's formula reads that gradient from a Context and adds the gradients of the op's
// inputs to the same Context.  Nodes run by falling sequence: all users of a value run before the
// node that made it, so its gradient is complete by then.

#include <functional>
#include <memory>
#include <utility>
#include <vector>
#include "error.hpp"
#include "graph.hpp"
#include "tensor.hpp"

namespace xgrad {

/// Options of grad() and backward(); the names are PyTorch's.
struct GradOptions {
  std::vector<Tensor> grad_outputs = {};  ///< one for each output; may be undefined for one element
  bool create_graph = false;              ///< the gradients can be differentiated again
  bool retain_graph = false;  ///< keep the graph for another run; create_graph implies it
  bool allow_unused = false;  ///< grad(): an input that no output uses gets an undefined gradient
};

/// The gradients of sum(outputs * grad_outputs) with respect to each input, leaf or not.  Changes
/// no grad() (torch.autograd.grad).  GraphError if an output has no graph, the graph was freed, an
/// input is unused, or 500 runs are nested on this thread.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {});

/// A Tensor whose grad() is filled, and the gradient to add to it.
using LeafGradients = std::vector<std::pair<std::shared_ptr<Tensor::Identity>, Tensor>>;

/// The gradients that backward() would add to the grad() of all leaves; adds nothing.
LeafGradients leaf_gradients(const std::vector<Tensor>& outputs, const GradOptions& options = {});
/// The same, but passes each gradient on as soon as it is complete.
using LeafSink = std::function<void(std::shared_ptr<Tensor::Identity> leaf, Tensor gradient)>;
void leaf_gradients(const std::vector<Tensor>& outputs, const GradOptions& options,
                    const LeafSink& sink);

/// Adds the gradients of sum(outputs * grad_outputs) to the grad() of all leaves
/// (torch.autograd.backward).  If anything throws, no grad() has changed.
void backward(const std::vector<Tensor>& outputs, const GradOptions& options = {});

// Sums of gradients: within a run, and into the grad() of leaves.

/// sum += gradient: in place if the sum has no other owner, and as a recorded op where graphs are
/// recorded.  An undefined sum becomes the gradient, under a handle of its own.
void accumulate(Tensor& sum, Tensor gradient);

/// Adds each gradient to the grad() of its Tensor, as a recorded op if `create_graph`: all or, if
/// anything throws, none.  Several threads may do this to the same Tensors (PyTorch's
/// AccumulateGrad).
void accumulate_grads(const LeafGradients& gradients, bool create_graph);

namespace detail {

/// Whether this is the only handle on the Tensor, its value and its memory, so that no other handle
/// could see a change.
bool is_sole_owner(const Tensor& x);

/// Gives x a new Tensor of the same value and graph node, unless it is the only handle, without
/// grad() or leaf's node.  Then a hook or an observer that keeps the old handle cannot change the
/// gradient that flows on.
void take_own_handle(Tensor& x);
/// A copy with a handle of its own.
inline Tensor with_own_handle(Tensor x) {
  take_own_handle(x);
  return x;
}

// Nested runs of the engine: a hook or a formula may start a run, in which a hook starts another,
// and each takes some of the thread's stack.

/// Lives as long as a run does on this thread.  GraphError beyond `limit` nested runs: they take
/// 0.6 MB of a stack that usually has 8 (3 MB under AddressSanitizer) and leave the rest to users'
/// code.
class NestedRun {
 public:
  static constexpr int limit = 500;

  NestedRun() {
    if (depth_ == limit)
      throw GraphError(
          "backward: 500 nested runs: a hook or a backward formula of each starts the "
          "next.  Is there an endless recursion?  If not, record what they differentiate in one "
          "graph and call backward() once");
    ++depth_;
  }
  NestedRun(const NestedRun&) = delete;
  NestedRun& operator=(const NestedRun&) = delete;
  ~NestedRun() { --depth_; }

  static int depth() { return depth_; }

 private:
  static inline thread_local constinit int depth_ = 0;
};

}  // namespace detail
}  // namespace xgrad
