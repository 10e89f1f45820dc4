#pragma once

#include <string>
#include <vector>
#include <xgrad/optim/optimizer.hpp>

namespace xgrad::optim {

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;  ///< how much of the mean square is kept
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

}  // namespace xgrad::optim
