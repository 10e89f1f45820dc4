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
  bool nesterov = false;
};

/// Stochastic gradient descent, as torch.optim.SGD:
///   g += weight_decay * p;  b = momentum * b + (1 - dampening) * g  (b = g in the first step)
///   p -= lr * (nesterov ? g + momentum * b : b), or p -= lr * g without momentum.
class SGD : public Optimizer {
 public:
  /// ValueError for options out of range, no parameter, a parameter that is not a leaf, or one that
  /// is given twice.  Nesterov's momentum needs momentum and no dampening.
  explicit SGD(const std::vector<Tensor>& params, const SGDOptions& options = {});
  explicit SGD(const std::vector<ParamGroup<SGDOptions>>& groups);
  void step() override;

 private:
  std::vector<Option> options_of(std::size_t group) override;
  void check_options(std::size_t group) const override;

  std::vector<SGDOptions> options_;
};

}  // namespace xgrad::optim
