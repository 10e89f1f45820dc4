#pragma once
// Checkpointing trades time for memory: a part of a model keeps no activations and computes them
// again in the backward run.

#include <concepts>
#include <functional>
#include <utility>
#include <vector>
#include "tensor.hpp"

namespace xgrad {

/// f(inputs), of which only the result is kept: the backward run calls f again to recompute what
/// its formulas need (torch.utils.checkpoint with use_reentrant=False).  Use it for parts of a
/// model that are cheap to compute and large to keep, as its blocks:
///
///   for (const lm::TransformerBlock& block : model.h)
///     x = checkpoint(block, x);
///
/// Gradients reach the inputs and all other Tensors that f uses, as a layer's parameters.  The
/// second call sees default_generator() in its state at the first, so dropout has the same mask;
/// other generators are not set back.  f is copied; objects that it refers to must live as long as
/// the graph.  Calls may be nested.  Under create_graph the graph of the second call is kept, as
/// without checkpoint().  Under NoGrad, Decompose and observers (Trace, DetectAnomaly) f runs
/// plainly.
///
/// The backward run throws GraphError if the second call of f uses other leaves or results of ops
/// than the first, or if one of its leaves has changed in between.  Side effects of f, as running
/// statistics, happen twice.
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                  const std::vector<Tensor>& inputs);
/// The same for a layer, or another function of one Tensor.
template <class F>
  requires std::invocable<const F&, const Tensor&>
Tensor checkpoint(F f, const Tensor& x) {
  const auto of_first = [f = std::move(f)](const std::vector<Tensor>& in) { return f(in[0]); };
  return checkpoint(std::function<Tensor(const std::vector<Tensor>&)>(of_first), std::vector{x});
}

}  // namespace xgrad
