#pragma once

#include <cstddef>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;  ///< weight and bias
};

/// (x - mean) / sqrt(biased variance + eps) * weight + bias: x (N, C, ...), with mean and variance
/// of each group of C / num_groups channels.  Wu and He, 2018.
struct GroupNorm {
  Size num_groups;
  Tensor weight;  ///< (C,), ones, or undefined
  Tensor bias;    ///< (C,), zeros, or undefined
  double eps;

  /// ValueError unless num_groups divides num_channels.
  GroupNorm(Size groups, Size num_channels, const GroupNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;  ///< ShapeError unless x has C channels, if affine
  static void visit(auto& self, auto&& v) {
    v("weight", self.weight);
    v("bias", self.bias);
  }
};

}  // namespace xgrad::nn
