#pragma once

#include <string>
#include <utility>
#include <vector>
#include <xgrad/optim/optimizer.hpp>

namespace xgrad::optim {

struct LionOptions {
  double lr = 1e-4;
  std::pair<double, double> betas = {0.9, 0.99};
  double weight_decay = 0;  ///< shrinks the parameter

  static constexpr const char* name = "Lion";
  std::vector<Option> options();
  std::vector<std::string> state_names() const;
  ElementUpdate update(const Parameter& p) const;
};
/// Lion: p -= lr * (sign(beta1 m + (1 - beta1) g) + weight_decay * p);  m = beta2 m + (1 - beta2)
/// g. Chen et al., Symbolic Discovery of Optimization Algorithms, 2023, algorithm 2.
using Lion = OptimizerOf<LionOptions>;

}  // namespace xgrad::optim
