#pragma once

#include <string>
#include <utility>
#include <vector>
#include <xgrad/optim/optimizer.hpp>

namespace xgrad::optim {

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;  ///< added to the gradient

  static constexpr const char* name = "Adam";
  std::vector<Option> options();
  std::vector<std::string> state_names() const;
  ElementUpdate update(const Parameter& p) const;
};
/// Adam, as torch.optim.Adam.  With g the gradient plus weight_decay * p, in step t = 1, 2, ...:
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
/// Each parameter counts its own steps: those in which it had a gradient.  Kingma and Ba, 2015.
using Adam = OptimizerOf<AdamOptions>;

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;  ///< shrinks the parameter

  static constexpr const char* name = "AdamW";
  std::vector<Option> options();
  std::vector<std::string> state_names() const;
  ElementUpdate update(const Parameter& p) const;
};
/// AdamW, as torch.optim.AdamW: p *= 1 - lr * weight_decay, then Adam's step without decay.
/// Loshchilov and Hutter, 2019.
using AdamW = OptimizerOf<AdamWOptions>;

/// Two groups: parameters of two or more dimensions with options.weight_decay, and the others
/// (biases, norms) without.  A group that would be empty is left out.
std::vector<ParamGroup<AdamWOptions>> decay_matrices(const std::vector<Tensor>& params,
                                                     const AdamWOptions& options);

}  // namespace xgrad::optim
