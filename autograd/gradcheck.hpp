#pragma once
// Checking gradients against finite differences: for your own layers and ops, and for ours.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

struct GradcheckOptions {
  double eps = 1e-6;   ///< central differences (f(x + eps) - f(x - eps)) / (2 eps)
  double atol = 1e-5;  ///< |analytic - numeric| <= atol + rtol * |numeric|, as PyTorch
  double rtol = 1e-3;
  std::uint64_t seed = 0;  ///< of the random cotangent
};

/// What was found.  Converts to true if every element agrees.
struct GradcheckReport {
  bool ok = true;
  std::size_t checked = 0;         ///< elements compared
  double worst_error = 0;          ///< largest |analytic - numeric| / max(1, |numeric|)
  std::size_t input = 0;           ///< where the worst element is
  std::vector<std::size_t> index;  ///< its position in that input
  double analytic = 0, numeric = 0;
  std::string message;  ///< one line that says all this
  explicit operator bool() const { return ok; }
};

/// Checks d <v, f(inputs)> / d input for a random cotangent v, every element of every input that
/// requires a gradient, by central differences.  Inputs must be float64 leaves (DTypeError names
/// the cure).
GradcheckReport gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});
/// The same for the gradient of f: second derivatives, for random cotangents.
GradcheckReport gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                              const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options = {});

}  // namespace xgrad
