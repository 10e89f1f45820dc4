#pragma once
// Losses as layers: loss(x, target).

#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/module.hpp>

namespace xgrad::nn {

struct MSELoss {
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return mse_loss(x, target, reduction);
  }
  static void visit(auto&, auto&&) {}
};

struct L1Loss {
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return l1_loss(x, target, reduction);
  }
  static void visit(auto&, auto&&) {}
};

struct SmoothL1Loss {
  Reduction reduction = Reduction::mean;
  double beta = 1;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return smooth_l1_loss(x, target, reduction, beta);
  }
  static void visit(auto&, auto&&) {}
};

struct HuberLoss {
  Reduction reduction = Reduction::mean;
  double delta = 1;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return huber_loss(x, target, reduction, delta);
  }
  static void visit(auto&, auto&&) {}
};

struct KLDivLoss {
  Reduction reduction = Reduction::mean;
  bool log_target = false;
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return kl_div(x, target, reduction, log_target);
  }
  static void visit(auto&, auto&&) {}
};

struct CrossEntropyLoss {
  CrossEntropyOptions options = {};  ///< its weight is a buffer, as all weights of losses
  Tensor operator()(const Tensor& x, const Indices& target) const {
    return cross_entropy(x, target, options);
  }
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return cross_entropy(x, target, options);
  }
  static void visit(auto& self, auto&& v) { v("weight", buffer(self.options.weight)); }
};

struct NLLLoss {
  NllLossOptions options = {};
  Tensor operator()(const Tensor& log_p, const Indices& target) const {
    return nll_loss(log_p, target, options);
  }
  static void visit(auto& self, auto&& v) { v("weight", buffer(self.options.weight)); }
};

struct BCELoss {
  BinaryCrossEntropyOptions options = {};
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return binary_cross_entropy(x, target, options);
  }
  static void visit(auto& self, auto&& v) { v("weight", buffer(self.options.weight)); }
};

struct BCEWithLogitsLoss {
  BinaryCrossEntropyOptions options = {};
  Tensor operator()(const Tensor& x, const Tensor& target) const {
    return binary_cross_entropy_with_logits(x, target, options);
  }
  static void visit(auto& self, auto&& v) {
    v("weight", buffer(self.options.weight));
    v("pos_weight", buffer(self.options.pos_weight));
  }
};

}  // namespace xgrad::nn
