#pragma once
// Derivatives of functions: the Jacobian J, the Hessian H and their products with vectors
// (torch.autograd.functional).
//
//   const auto f = [](const Tensor& x) { return sum(x * x * x); };
//   const Tensor H = hessian(f, x);        // (3, 3) for x (3,): 6 x on the diagonal
//   const auto [y, Hv] = hvp(f, x, v);     // the same times v, without H
//
// Each comes in two forms: of a function of one Tensor, which is given as a Tensor, and of a
// function of several, which are given as a vector.  Both take their arguments in PyTorch's order.
//
// In all of them:
// - The inputs need not require a gradient, and no grad() of any Tensor changes.  One Tensor may be
//   given as several inputs: each has its own derivative.
// - Where an output does not depend on an input, the derivative is zero (PyTorch's strict=False).
// - With create_graph the results can be differentiated again, in the inputs, in v, and in whatever
//   else the function uses; else they are constants.
// - v must have the shapes and dtypes of what it is multiplied with, else ShapeError or DTypeError;
//   ValueError if there are too many or too few.  It may be left out where that is one Tensor of
//   one element: then it is 1.
// - Whatever the function throws passes through.

#include <functional>
#include <utility>
#include <vector>
#include <xgrad/autograd/check/tensor_function.hpp>

namespace xgrad {

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
