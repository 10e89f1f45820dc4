#pragma once

#include <string>
#include <vector>
#include <xgrad/optim/optimizer.hpp>

namespace xgrad::optim {

struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;  ///< shrinks the parameter
  double momentum = 0.95;
  bool nesterov = true;
  double eps = 1e-7;

  static constexpr const char* name = "Muon";
  std::vector<Option> options();
  std::vector<std::string> state_names() const;
  void check(const std::vector<Tensor>& params) const;  ///< ShapeError unless all are matrices
  ElementUpdate update(const Parameter& p) const;
};
/// Muon, as torch.optim.Muon, for matrices (rows, columns); the others are for AdamW:
///   b = momentum * b + (1 - momentum) * g;  u = nesterov ? momentum * b + (1 - momentum) * g : b
///   p -= lr * (weight_decay * p + sqrt(max(1, rows / columns)) * orthogonal(u))
/// where orthogonal(u) is near the orthogonal factor of u: five Newton-Schulz iterations from
/// u / max(|u|, eps), in p's dtype, where PyTorch's run in bfloat16.  Jordan et al., 2024.
using Muon = OptimizerOf<MuonOptions>;

}  // namespace xgrad::optim
