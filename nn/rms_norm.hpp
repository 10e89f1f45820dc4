#pragma once

#include <optional>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions.  Zhang and Sennrich, 2019.
struct RMSNorm {
  Dims normalized_shape;
  Tensor weight;              ///< (normalized_shape), ones
  std::optional<double> eps;  ///< the dtype's epsilon unless given

  RMSNorm(const Dims& sizes, std::optional<double> epsilon = std::nullopt);
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) { v("weight", self.weight); }
};

}  // namespace xgrad::nn
