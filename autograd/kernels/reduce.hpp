#pragma once
// Reductions of (outer, n, inner) over n to (outer, inner).
//
// Sums are taken in blocks whose partial sums are summed again, so that the rounding error grows
// with the logarithm of n and not with n.  Blocks are also the pieces of work for threads; their
// size is fixed, so a result does not depend on the number of threads.  Over n = 0 a reduction is
// its identity: 0 for sums, 1 for products, -inf for max, inf for min.

#include <cstdint>
#include <xgrad/autograd/kernels/axis.hpp>

namespace xgrad::kernels {

template <class T>
void sum(Axis axis, const T* x, T* y);
template <class T>
void prod(Axis axis, const T* x, T* y);
/// NaN if any element is NaN; so is min().
template <class T>
void max(Axis axis, const T* x, T* y);
template <class T>
void min(Axis axis, const T* x, T* y);

// The inner sums of vector norms.
template <class T>
void sum_squares(Axis axis, const T* x, T* y);
template <class T>
void sum_powers(Axis axis, const T* x, double p, T* y);  ///< sum |x|^p

/// log(sum(exp(x))), with the maximum subtracted inside; -inf where all are -inf or n is 0.
template <class T>
void logsumexp(Axis axis, const T* x, T* y);

/// Where along n the largest (or smallest) element is: the first of equals, or the first NaN.
/// n must not be 0.
template <class T>
void arg_extremum(Axis axis, const T* x, bool largest, std::int64_t* y);

}  // namespace xgrad::kernels
