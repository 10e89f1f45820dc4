#pragma once
// One pass over a parameter for each step of an optimizer, and the passes of gradient clipping.

#include <cstddef>
#include <span>
#include <vector>

namespace xgrad::kernels {

/// What an Adam step of one parameter needs; pointers to n elements each.
template <class T>
struct AdamTask {
  T* parameter;
  const T* gradient;
  T* exp_avg;
  T* exp_avg_sq;
  std::size_t n;
  T keep;   ///< parameter *= keep first: 1 - lr * weight_decay in AdamW, else 1
  T decay;  ///< gradient += decay * parameter: weight_decay in Adam, else 0
  T beta1, beta2;
  T rest1, rest2;  ///< 1 - beta1, 1 - beta2, each rounded once
  T step_size;     ///< lr / (1 - beta1^t)
  T correction;    ///< sqrt(1 - beta2^t)
  T eps;
};

/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
/// parameter -= step_size * m / (sqrt(v) / correction + eps).
template <class T>
void adam(std::span<const AdamTask<T>> tasks);

/// What an SGD step of one parameter needs.
template <class T>
struct SgdTask {
  T* parameter;
  const T* gradient;
  T* momentum_buffer;  ///< null without momentum
  std::size_t n;
  T lr, weight_decay, momentum;
  T rest;  ///< 1 - dampening; 1 in the first step, which fills the buffer with the gradient
  bool nesterov;
};

/// g += weight_decay * parameter;  b = momentum * b + rest * g;
/// parameter -= lr * (nesterov ? g + momentum * b : b), or lr * g without momentum.
template <class T>
void sgd(std::span<const SgdTask<T>> tasks);

/// sum = the sum of the parts in the order of a binary tree: the sum of the first half, and of the
/// rest, added.  A part that is null is left out.  The sum may lie where the first part lies.
template <class T>
struct SumTask {
  T* sum = nullptr;
  std::vector<const T*> parts;
  std::size_t n = 0;
};
template <class T>
void sum_tree(std::span<const SumTask<T>> tasks);

/// The sum of squares, in double.
template <class T>
double sum_of_squares(const T* x, std::size_t n);
/// sum |x|^p, in order.
template <class T>
double sum_of_powers(const T* x, std::size_t n, double p);
/// The largest of |x| and `least`; NaN if there is one.
template <class T>
double largest_magnitude(const T* x, std::size_t n, double least);

/// x *= factor.
template <class T>
void scale(T* x, std::size_t n, T factor);

/// x limited to [-limit, limit]; NaN stays.
template <class T>
void clamp(T* x, std::size_t n, T limit);

}  // namespace xgrad::kernels
