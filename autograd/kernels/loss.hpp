#pragma once
// Cross entropy of the rows of a matrix of logits, and its derivative; squared errors.
//
// With log p = x - max - log(sum(exp(x - max))) the loss of a row is sum_c q_c (-log p_c), where q
// is what the target asks for.  Its derivative is p sum(q) - q, times the row's gradient.  p is
// computed again in the backward, which costs less than keeping it.

#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

/// What goes in.  q_c = weight_c * ((1 - smoothing) * target_c + smoothing / classes), where the
/// target is a probability for each class, or 1 for one class and 0 for the others.
template <class T>
struct Logits {
  std::size_t rows, classes;
  const T* x;
  const T* weight;  ///< one for each class, or null: 1
  T smoothing;
};

/// The gradient of the loss of row r.
template <class T>
struct RowGradient {
  const T* g;
  bool one_for_each_row;  ///< else g is a single number
  T factor;
  T operator()(std::size_t r) const { return (one_for_each_row ? g[r] : *g) * factor; }
};

/// loss[r], for target[r] in 0 ... classes - 1; 0 where target[r] is `ignored`.
template <class T>
void cross_entropy(const Logits<T>& in, const std::int64_t* target, std::int64_t ignored, T* loss);
template <class T>
void cross_entropy_backward(const Logits<T>& in, const std::int64_t* target, std::int64_t ignored,
                            const RowGradient<T>& g, T* dx);

/// The same with target probabilities, rows of `classes`.
template <class T>
void cross_entropy(const Logits<T>& in, const T* target, T* loss);
/// dx or dtarget may be null: not wanted.
template <class T>
void cross_entropy_backward(const Logits<T>& in, const T* target, const RowGradient<T>& g, T* dx,
                            T* dtarget);

/// sum((a - b)^2) of n elements.
template <class T>
double squared_error(std::size_t n, const T* a, const T* b);
}  // namespace xgrad::kernels
