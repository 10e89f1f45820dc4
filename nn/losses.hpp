#pragma once
// Losses as layers: loss(x, target).

#include <type_traits>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/module.hpp>

namespace xgrad::nn {

/// The loss op as a layer: op(x, target, options).  Weights in the options are buffers.  A loss of
/// class indices has op_of_indices, too, or only it.
template <class Options, Tensor (*op)(const Tensor&, const Tensor&, Options),
          Tensor (*op_of_indices)(const Tensor&, const Indices&, Options) = nullptr>
struct Loss {
  std::remove_cvref_t<Options> options = {};

  Tensor operator()(const Tensor& x, const Tensor& target) const requires(op != nullptr) {
    return op(x, target, options);
  }
  Tensor operator()(const Tensor& x, const Indices& target) const
      requires(op_of_indices != nullptr) {
    return op_of_indices(x, target, options);
  }
  static void visit(auto& self, auto&& v) {
    if constexpr (requires { self.options.weight; })
      v("weight", buffer(self.options.weight));
    if constexpr (requires { self.options.pos_weight; })
      v("pos_weight", buffer(self.options.pos_weight));
  }
};

using MSELoss = Loss<Reduction, mse_loss>;
using L1Loss = Loss<Reduction, l1_loss>;
using HuberLoss = Loss<const HuberLossOptions&, huber_loss>;
using SmoothL1Loss = Loss<const SmoothL1LossOptions&, smooth_l1_loss>;
using KLDivLoss = Loss<const KLDivLossOptions&, kl_div>;
using CrossEntropyLoss = Loss<const CrossEntropyOptions&, cross_entropy, cross_entropy>;
using NLLLoss = Loss<const NllLossOptions&, nullptr, nll_loss>;
using BCELoss = Loss<const BinaryCrossEntropyOptions&, binary_cross_entropy>;
using BCEWithLogitsLoss = Loss<const BinaryCrossEntropyOptions&, binary_cross_entropy_with_logits>;

}  // namespace xgrad::nn
