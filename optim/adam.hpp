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
};

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;  ///< shrinks the parameter
};

/// Adam, as torch.optim.Adam.  With g the gradient plus weight_decay * p, in step t = 1, 2, ...:
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
/// Each parameter counts its own steps: those in which it had a gradient.  Kingma and Ba, 2015.
class Adam : public Optimizer {
 public:
  /// ValueError for options out of range, no parameter, a parameter that is not a leaf, or one that
  /// is given twice.
  explicit Adam(const std::vector<Tensor>& params, const AdamOptions& options = {});
  explicit Adam(const std::vector<ParamGroup<AdamOptions>>& groups);
  void step() override;

 protected:
  /// decoupled: weight decay shrinks the parameter.
  Adam(std::string name, bool decoupled, const std::vector<ParamGroup<AdamOptions>>& groups);

 private:
  std::vector<Option> options_of(std::size_t group) override;
  void check_options(std::size_t group) const override;

  bool decoupled_;
  std::vector<AdamOptions> options_;
};

/// AdamW, as torch.optim.AdamW: p *= 1 - lr * weight_decay, then Adam's step without decay.
/// Loshchilov and Hutter, 2019.
class AdamW : public Adam {
 public:
  explicit AdamW(const std::vector<Tensor>& params, const AdamWOptions& options = {});
  explicit AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups);
};

/// Two groups: parameters of two or more dimensions with options.weight_decay, and the others
/// (biases, norms) without.  A group that would be empty is left out.
std::vector<ParamGroup<AdamWOptions>> decay_matrices(const std::vector<Tensor>& params,
                                                     const AdamWOptions& options);

}  // namespace xgrad::optim
