#pragma once

#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

/// In training, keeps each element with probability 1 - p and scales it by 1 / (1 - p).
struct Dropout {
  double p;
  bool training = true;

  /// ValueError unless 0 <= p <= 1.
  explicit Dropout(double probability = 0.5);
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) { v("training", self.training); }
};

}  // namespace xgrad::nn
