#pragma once
// Memory for time: a part of a model that keeps nothing for the backward run, which computes it
// again.

#include <concepts>
#include <functional>
#include <utility>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

/// f(inputs), of which only the result is kept: the backward run calls f again, and then knows what
/// its formulas need (torch.utils.checkpoint with use_reentrant=False).  For stretches of a model
/// that are cheap to compute and large to keep, as its blocks:
///
///   for (const nn::TransformerBlock& block : model.h)
///     x = checkpoint(block, x);
///
/// Gradients reach the inputs and all else that f uses, as the parameters of a layer.  For the
/// second call default_generator() is set back to where it was at the first, so dropout has the
/// same mask; other generators are not.  f is copied; objects that it refers to must live as long
/// as the graph.  Calls may be within one another.  Under create_graph the graph of the second call
/// is kept, as if f had been called plainly; so it is, in the first place, under NoGrad, Decompose
/// and under an observer (Trace, DetectAnomaly).
///
/// The backward run throws GraphError if the second call of f is not made of the same leaves and
/// results of ops as the first, or if one of its leaves has been changed in between.  Changes that
/// f makes, as of running statistics, are made twice.
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                  const std::vector<Tensor>& inputs);
/// The same for a layer, or another function of one Tensor.
template <class F>
requires std::invocable<const F&, const Tensor&> Tensor checkpoint(F f, const Tensor& x) {
  const auto of_first = [f = std::move(f)](const std::vector<Tensor>& in) { return f(in[0]); };
  return checkpoint(std::function<Tensor(const std::vector<Tensor>&)>(of_first), std::vector{x});
}

}  // namespace xgrad
