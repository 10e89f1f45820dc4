#pragma once

#include <string>
#include <vector>
#include <xgrad/optim/optimizer.hpp>

namespace xgrad::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;

  static constexpr const char* name = "Adagrad";
  std::vector<Option> options();
  std::vector<std::string> state_names() const;
  ElementUpdate update(const Parameter& p) const;
};
/// Adagrad, as torch.optim.Adagrad, in step t = 1, 2, ...:
///   g += weight_decay * p;  s = s + g^2, from initial_accumulator_value on
///   p -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps).  Duchi, Hazan and Singer, 2011.
using Adagrad = OptimizerOf<AdagradOptions>;

}  // namespace xgrad::optim
