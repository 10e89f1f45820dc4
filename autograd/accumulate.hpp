#pragma once
// Sums of gradients: within a run, and into the grad() of leaves.

#include <memory>
#include <utility>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

/// Whether nobody else holds this Tensor, its value or its memory, so that nobody sees them change.
bool is_sole_owner(const Tensor& x);

/// Makes x the same value and place in the graph, and nothing else that it may have (a grad(), a
/// leaf's node), under a handle that is nobody else's: through it nobody changes what he was shown.
void take_own_handle(Tensor& x);
/// A copy made so.
inline Tensor with_own_handle(Tensor x) {
  take_own_handle(x);
  return x;
}

/// sum += gradient: in place if the sum has no other owner, and as an op of the graph where graphs
/// are recorded.  A sum that is undefined so far becomes the gradient, under a handle of its own.
void accumulate(Tensor& sum, Tensor gradient);

/// Adds each gradient to the grad() of its Tensor, as an op of the graph if it says so: all or, if
/// anything throws, none.  Several threads may do this to the same Tensors (PyTorch's
/// AccumulateGrad).
void accumulate_grads(
    const std::vector<std::pair<std::shared_ptr<Tensor::Impl>, Tensor>>& gradients,
    bool create_graph);

}  // namespace xgrad
