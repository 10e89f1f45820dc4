#pragma once
// Checks of a function's values: its gradient may be right and the function wrong.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include "../tensor.hpp"
#include "tensor_function.hpp"

namespace xgrad {

/// The dependences between positions along a dimension.  Converts to true if there is no forbidden
/// one.
struct LeakReport {
  bool ok = true;
  bool by_value = false;   ///< a value leaked; else, a gradient
  std::size_t output = 0;  ///< the position, or item, ...
  std::size_t input = 0;   ///< ... that depends on this one
  double leak = 0;         ///< d out / d in, or the change of the value
  std::string message;     ///< a summary of all this
  explicit operator bool() const { return ok; }
};

struct CausalOptions {
  std::int64_t seq_dim = -2;  ///< the dimension of time, T, of input and output
  std::uint64_t seed = 0;     ///< of the random cotangents and replaced values
  double atol = 0;            ///< smaller leaks are ignored, as rounding, which an FFT leaves
};

struct CausalReport : LeakReport {
  bool past_is_missing = false;  ///< some position does not depend on an allowed one
};

/// Checks that position t of f(x) depends on positions 0 ... t of x only: the Jacobian d f(x)[t] /
/// d x[s] is exactly zero for s > t, and f(x)[t] keeps its bits when x[s] is replaced, or both
/// differ by at most atol.  x is (B, T, ...) or (T, ...), f(x) has the same T at seq_dim.  Names
/// the earliest leak: the smallest t, and for it the smallest s.  f draws the same numbers from
/// default_generator() in each call; two calls that differ are a failure.
CausalReport check_causal(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                          const CausalOptions& options = {});

struct BatchOptions {
  std::int64_t dim = 0;    ///< the dimension of the batch, B, of input and output
  std::uint64_t seed = 0;  ///< of the random cotangents and replaced values
  double atol = 0;         ///< smaller leaks are ignored
};

/// Checks like check_causal() that item b of f(x) depends on item b of x alone: the Jacobian d
/// f(x)[b] / d x[c] is exactly zero for b != c, and f(x)[b] keeps its bits when x[c] is replaced.
/// x is (B, ...), f(x) has the same B at dim, else ShapeError; ValueError if B is below 2.
LeakReport check_batch_independence(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                                    const BatchOptions& options = {});

struct DropoutOptions {
  std::size_t samples = 1000;
  std::uint64_t seed = 0;  ///< of default_generator() while sampling; it is reset afterwards
  double limit = 5;        ///< allowed error of the mean, in standard errors
};

/// The result.  Converts to true if the mean is right.
struct DropoutReport {
  bool ok = true;
  double ratio = 1;            ///< of the mean to the expected value, by least squares
  double standard_error = 0;   ///< of the ratio
  double standard_errors = 0;  ///< the error of the mean in standard errors, in the worst direction
  double zeros = 0;            ///< the fraction of elements that were dropped
  std::string message;         ///< a summary of all this
  explicit operator bool() const { return ok; }
};

/// Checks that dropout keeps the mean: E[dropped()] = expected, within statistical error.
///
///   check_dropout_mean([&] { return my_dropout(x, 0.2); }, x)
///
/// The mean of many samples is compared with `expected` along three directions: `expected` itself,
/// all ones, and a random one.
DropoutReport check_dropout_mean(const std::function<Tensor()>& dropped, const Tensor& expected,
                                 const DropoutOptions& options = {});

// Derivatives of functions: the Jacobian J, the Hessian H and their products with vectors
// (torch.autograd.functional).
//
//   const auto f = [](const Tensor& x) { return sum(x * x * x); };
//   const Tensor H = hessian(f, x);        // (3, 3) for x (3,): 6 x on the diagonal
//   const auto [y, Hv] = hvp(f, x, v);     // the same times v, without H
//
// Each comes in two forms: for a function of one Tensor, and for a function of a vector of Tensors.
// Both take their arguments in PyTorch's order.
//
// In all of them:
// - The inputs need not require a gradient, and no grad() of any Tensor changes.  One Tensor may be
//   given as several inputs: each has its own derivative.
// - If an output does not depend on an input, the derivative is zero (PyTorch's strict=False).
// - With create_graph the results can be differentiated again, by the inputs, by v, and by all else
//   that the function uses; otherwise they are constants.
// - v must have the shapes and dtypes of its counterparts, else ShapeError or DTypeError; and as
//   many Tensors, else ValueError.  Without v, a counterpart of one element gets 1.
// - Errors of the function pass through.

/// The outputs y = f(x) and vᵀJ, which has the shapes of the inputs: one backward run.
/// v has the shapes of the outputs.
std::pair<std::vector<Tensor>, std::vector<Tensor>> vjp(const TensorFunction& func,
                                                        const std::vector<Tensor>& inputs,
                                                        const std::vector<Tensor>& v = {},
                                                        bool create_graph = false);
std::pair<Tensor, Tensor> vjp(const std::function<Tensor(const Tensor&)>& func, const Tensor& input,
                              const Tensor& v = {}, bool create_graph = false);

/// The outputs y = f(x) and Jv, which has the shapes of the outputs: the derivative along v.
/// v has the shapes of the inputs.  Two backward runs: uᵀJ is linear in u, and its derivative in u
/// along v is Jv.
std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(const TensorFunction& func,
                                                        const std::vector<Tensor>& inputs,
                                                        const std::vector<Tensor>& v = {},
                                                        bool create_graph = false);
std::pair<Tensor, Tensor> jvp(const std::function<Tensor(const Tensor&)>& func, const Tensor& input,
                              const Tensor& v = {}, bool create_graph = false);

/// The output y = f(x), a Tensor of one element, and Hv, which has the shapes of the inputs, as v
/// does.  Two backward runs.  They compute vᵀH, which is the same: H is symmetric wherever the
/// second derivatives are continuous.  ShapeError if the output has more than one element,
/// ValueError if there are several.
std::pair<Tensor, std::vector<Tensor>> hvp(const TensorFunction& func,
                                           const std::vector<Tensor>& inputs,
                                           const std::vector<Tensor>& v = {},
                                           bool create_graph = false);
std::pair<Tensor, Tensor> hvp(const std::function<Tensor(const Tensor&)>& func, const Tensor& input,
                              const Tensor& v = {}, bool create_graph = false);

/// J[i][j] = d output i / d input j, of shape (shape of output i..., shape of input j...).  One
/// backward run for each element of the outputs.
std::vector<std::vector<Tensor>> jacobian(const TensorFunction& func,
                                          const std::vector<Tensor>& inputs,
                                          bool create_graph = false);
Tensor jacobian(const std::function<Tensor(const Tensor&)>& func, const Tensor& input,
                bool create_graph = false);

/// H[i][j] = d² output / d input i d input j, of shape (shape of input i..., shape of input j...):
/// the Jacobian of the gradient, one backward run for each element of the inputs.  The output must
/// be one Tensor of one element, as for hvp().
std::vector<std::vector<Tensor>> hessian(const TensorFunction& func,
                                         const std::vector<Tensor>& inputs,
                                         bool create_graph = false);
Tensor hessian(const std::function<Tensor(const Tensor&)>& func, const Tensor& input,
               bool create_graph = false);

}  // namespace xgrad
