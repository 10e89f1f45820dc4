#pragma once

#include <xgrad/autograd/tensor.hpp>

namespace xgrad::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool bias = true;  ///< without one, the layer is nanoGPT's
};

/// (x - mean) / sqrt(biased variance + eps) * weight + bias over the last dimensions.
/// Ba, Kiros and Hinton, 2016.
struct LayerNorm {
  Dims normalized_shape;
  Tensor weight;  ///< (normalized_shape), ones
  Tensor bias;    ///< (normalized_shape), zeros, or undefined
  double eps;

  /// normalized_shape: the sizes of the last dimensions, or just that of the last.
  LayerNorm(const Dims& sizes, const LayerNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("weight", self.weight);
    v("bias", self.bias);
  }
};

}  // namespace xgrad::nn
