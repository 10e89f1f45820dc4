#pragma once

#include <string>
#include <vector>
#include <xgrad/optim/optimizer.hpp>

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

}  // namespace xgrad::optim
