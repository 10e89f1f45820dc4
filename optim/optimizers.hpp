#pragma once
// Optimizers, gradient clipping, and schedules of the learning rate.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "../autograd/tensor.hpp"
#include "optimizer.hpp"

namespace xgrad::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  ///< needs momentum and no dampening

  static constexpr const char* name = "SGD";
  std::vector<Option> options();
  std::vector<std::string> state_names() const;
  void check(const std::vector<Tensor>& params) const;
  ElementUpdate update(const Parameter& p) const;
};
/// Stochastic gradient descent, as torch.optim.SGD:
///   g += weight_decay * p;  b = momentum * b + (1 - dampening) * g  (b = g in the first step)
///   p -= lr * (nesterov ? g + momentum * b : b), or p -= lr * g without momentum.
using SGD = OptimizerOf<SGDOptions>;

template <bool decoupled>
struct AdamOptionsOf {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  /// Added to the gradient; if decoupled, it shrinks the parameter.
  double weight_decay = decoupled ? 0.01 : 0;

  static constexpr const char* name = decoupled ? "AdamW" : "Adam";
  std::vector<Option> options();
  std::vector<std::string> state_names() const { return {"step", "exp_avg", "exp_avg_sq"}; }
  ElementUpdate update(const Parameter& p) const;
};
using AdamOptions = AdamOptionsOf<false>;
using AdamWOptions = AdamOptionsOf<true>;
/// Adam, as torch.optim.Adam.  With g the gradient plus weight_decay * p, in step t = 1, 2, ...:
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
/// Each parameter counts its own steps: only steps in which it had a gradient.  Kingma and Ba,
/// 2015.
using Adam = OptimizerOf<AdamOptions>;

/// AdamW, as torch.optim.AdamW: p *= 1 - lr * weight_decay, then Adam's step without decay.
/// Loshchilov and Hutter, 2019.
using AdamW = OptimizerOf<AdamWOptions>;

/// Two groups: parameters of two or more dimensions with options.weight_decay, and the others
/// (biases, norms) without.  An empty group is omitted.
std::vector<ParamGroup<AdamWOptions>> decay_matrices(const std::vector<Tensor>& params,
                                                     const AdamWOptions& options);

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;

  static constexpr const char* name = "Adagrad";
  std::vector<Option> options();
  std::vector<std::string> state_names() const { return {"step", "sum"}; }
  double initial_state() const { return initial_accumulator_value; }
  ElementUpdate update(const Parameter& p) const;
};
/// Adagrad, as torch.optim.Adagrad, in step t = 1, 2, ...:
///   g += weight_decay * p;  s = s + g^2, from initial_accumulator_value on
///   p -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps).  Duchi, Hazan and Singer, 2011.
using Adagrad = OptimizerOf<AdagradOptions>;

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;  ///< the share of the mean square that is kept
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;

  static constexpr const char* name = "RMSprop";
  std::vector<Option> options();
  std::vector<std::string> state_names() const;
  ElementUpdate update(const Parameter& p) const;
};
/// RMSprop, as torch.optim.RMSprop that is not centered:
///   g += weight_decay * p;  v = alpha * v + (1 - alpha) * g^2;  d = g / (sqrt(v) + eps)
///   b = momentum * b + d;  p -= lr * b, or p -= lr * d without momentum.  Hinton, 2012.
using RMSprop = OptimizerOf<RMSpropOptions>;

struct LionOptions {
  double lr = 1e-4;
  std::pair<double, double> betas = {0.9, 0.99};
  double weight_decay = 0;  ///< shrinks the parameter

  static constexpr const char* name = "Lion";
  std::vector<Option> options();
  std::vector<std::string> state_names() const { return {"exp_avg"}; }
  ElementUpdate update(const Parameter& p) const;
};
/// Lion: p -= lr * (sign(beta1 m + (1 - beta1) g) + weight_decay * p);  m = beta2 m + (1 - beta2)
/// g. Chen et al., Symbolic Discovery of Optimization Algorithms, 2023, algorithm 2.
using Lion = OptimizerOf<LionOptions>;

struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;  ///< shrinks the parameter
  double momentum = 0.95;
  bool nesterov = true;
  double eps = 1e-7;

  static constexpr const char* name = "Muon";
  std::vector<Option> options();
  std::vector<std::string> state_names() const { return {"momentum_buffer"}; }
  void check(const std::vector<Tensor>& params) const;  ///< ShapeError unless all are matrices
  ElementUpdate update(const Parameter& p) const;
};
/// Muon, as torch.optim.Muon, for matrices (rows, columns); the others are for AdamW:
///   b = momentum * b + (1 - momentum) * g;  u = nesterov ? momentum * b + (1 - momentum) * g : b
///   p -= lr * (weight_decay * p + sqrt(max(1, rows / columns)) * orthogonal(u))
/// where orthogonal(u) is near the orthogonal factor of u: five Newton-Schulz iterations from
/// u / max(|u|, eps), in p's dtype, where PyTorch's run in bfloat16.  Jordan et al., 2024.
using Muon = OptimizerOf<MuonOptions>;

// Compiled in optimizers.cpp, not again in every program.
extern template class OptimizerOf<SGDOptions>;
extern template class OptimizerOf<AdamOptions>;
extern template class OptimizerOf<AdamWOptions>;
extern template class OptimizerOf<AdagradOptions>;
extern template class OptimizerOf<RMSpropOptions>;
extern template class OptimizerOf<LionOptions>;
extern template class OptimizerOf<MuonOptions>;

// Limiting gradients between backward() and step().

struct ClipOptions {
  double norm_type = 2;             ///< p of the p-norm, above 0; infinity is the largest magnitude
  bool error_if_nonfinite = false;  ///< ValueError, before anything changes, if the norm is not
};

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)), where norm is the norm of all
/// gradients as one vector, and returns it (torch.nn.utils.clip_grad_norm_).  The sum runs in
/// double, in an order that does not depend on the number of threads.  Parameters without a
/// gradient are skipped; one that is listed twice, as tied ones may be, counts once and is scaled
/// once.  ValueError if max_norm is negative or norm_type is not positive.
double clip_grad_norm_(const std::vector<Tensor>& params, double max_norm,
                       const ClipOptions& options = {});

/// Limits each element of each gradient to [-limit, limit] (torch.nn.utils.clip_grad_value_).
/// ValueError if limit is negative.
void clip_grad_value_(const std::vector<Tensor>& params, double limit);

// Learning rates that change: functions from the step, counted from 0, to the rate.
//
//   const Schedule rate = warmup_cosine({.learning_rate = 1e-3, .warmup_iters = 100});
//   for (std::size_t step = 0; ...; ++step) { optimizer.set_learning_rate(rate(step)); ... }

using Schedule = std::function<double(std::size_t step)>;

/// Always lr.
Schedule constant(double lr);
/// lr * gamma^(step / step_size), rounded down (torch.optim.lr_scheduler.StepLR).  ValueError if
/// step_size is 0.
Schedule step_decay(double lr, std::size_t step_size, double gamma = 0.1);
/// lr * gamma^step (torch.optim.lr_scheduler.ExponentialLR).
Schedule exponential(double lr, double gamma);

struct WarmupCosine {
  double learning_rate = 1e-3;
  std::optional<double> min_lr = {};  ///< none: a tenth of learning_rate
  std::size_t warmup_iters = 100;
  std::size_t lr_decay_iters = 2000;
};
/// learning_rate * (step + 1) / (warmup_iters + 1) before warmup_iters; from there half a cosine
/// wave down to min_lr at lr_decay_iters; then min_lr (nanoGPT).  ValueError if the rate would rise
/// to min_lr, or if warmup_iters is beyond lr_decay_iters.
Schedule warmup_cosine(const WarmupCosine& options);

}  // namespace xgrad::optim
