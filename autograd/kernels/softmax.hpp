#pragma once
// Softmax along an axis, and its derivative.

#include <xgrad/autograd/kernels/axis.hpp>

namespace xgrad::kernels {

/// y = exp(x - max) / sum(exp(x - max)).  A row of only -inf gives zeros.
template <class T>
void softmax(Axis axis, const T* x, T* y);
/// y = x - max - log(sum(exp(x - max))).  A row of only -inf gives NaN.
template <class T>
void log_softmax(Axis axis, const T* x, T* y);

/// dx = y (g - sum(g y)), of softmax's output y and its gradient g.
template <class T>
void softmax_backward(Axis axis, const T* y, const T* g, T* dx);
/// dx = g - exp(y) sum(g), of log_softmax's output y and its gradient g.
template <class T>
void log_softmax_backward(Axis axis, const T* y, const T* g, T* dx);

}  // namespace xgrad::kernels
