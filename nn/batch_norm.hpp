#pragma once

#include <cstddef>
#include <optional>
#include <xgrad/nn/module.hpp>

namespace xgrad::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< none: running statistics are means over all batches
  bool affine = true;                    ///< weight and bias
  bool track_running_stats = true;       ///< without, evaluation takes the batch's statistics
};

/// (x - mean) / sqrt(variance + eps) * weight + bias of each channel: x (N, C) or (N, C, L).  In
/// training mean and biased variance are the batch's, and a call moves the running ones, of the
/// unbiased variance: running = (1 - momentum) * running + momentum * batch.  In evaluation they
/// are the running ones.  Copies of the layer share them, as they do parameters.  parallel::
/// backward() does not cut such a batch.  Ioffe and Szegedy, 2015.
struct BatchNorm1d {
  Size num_features;
  BatchNormOptions options;
  Tensor weight, bias;               ///< (C,), ones and zeros, or undefined
  Tensor running_mean, running_var;  ///< (C,), zeros and ones, or undefined
  Tensor num_batches_tracked;        ///< ()
  bool training = true;

  explicit BatchNorm1d(Size features, const BatchNormOptions& o = {});
  /// ShapeError for another x, ValueError if the statistics are of one value.
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("weight", self.weight);
    v("bias", self.bias);
    v("running_mean", buffer(self.running_mean));
    v("running_var", buffer(self.running_var));
    v("num_batches_tracked", buffer(self.num_batches_tracked));
    v("training", self.training);
  }
};

}  // namespace xgrad::nn
