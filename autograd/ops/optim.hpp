#pragma once
// What optimizers and gradient clipping do with lists of Tensors, in place and without a graph.
//
// All or nothing: whatever can fail, a check or memory, does so before the first element changes.
// A Tensor that shares its elements with others gets its own first.

#include <cstddef>
#include <span>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad {

/// Adam's step for one parameter.  The Tensors have one shape and dtype.
struct AdamStep {
  Tensor parameter, gradient, exp_avg, exp_avg_sq;
  std::size_t t;  ///< the number of the step, from 1
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;  ///< weight decay shrinks the parameter (AdamW), else it is added to the gradient
};
/// decoupled: p *= 1 - lr * weight_decay, else g += weight_decay * p; then
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
/// for each (torch._fused_adamw_).  ShapeError if a Tensor has not its parameter's shape and dtype.
void adam_step(std::span<AdamStep> steps);

/// A step of gradient descent for one parameter.  The Tensors have one shape and dtype.
struct SgdStep {
  Tensor parameter, gradient;
  Tensor momentum_buffer;  ///< undefined without momentum
  double lr, weight_decay, momentum, dampening;
  bool nesterov;
  bool first;  ///< the buffer is filled with the gradient
};
/// g += weight_decay * p;  b = momentum * b + (1 - dampening) * g, or b = g in the first step;
///   p -= lr * (nesterov ? g + momentum * b : b), or p -= lr * g without momentum.
/// Errors as adam_step.
void sgd_step(std::span<SgdStep> steps);

/// The p-norm of all Tensors as one vector, the largest magnitude for p = infinity
/// (torch.nn.utils.get_total_norm).  The sum runs in double, in an order that does not depend on
/// the number of threads.
double total_norm(std::span<const Tensor> tensors, double p);

/// The first Tensor of each list becomes the sum of the list in the order of a binary tree: the sum
/// of the first half of the list, and of the rest, added.  Undefined Tensors are left out.
/// ShapeError if a list's Tensors differ in shape or dtype.
void foreach_tree_sum_(std::span<std::vector<Tensor>> lists);

/// x *= factor for each (torch._foreach_mul_).
void foreach_mul_(std::span<Tensor> tensors, double factor);
/// Each element limited to [-limit, limit]; NaN stays.
void foreach_clamp_(std::span<Tensor> tensors, double limit);

}  // namespace xgrad
