#pragma once
// The mean of a row, what is left when it is taken away, and the sum of squares of that.
//
// A mean that is rounded to the dtype is off by up to half a last place of the elements, which can
// be more than their deviations.  So a mean has two parts, both from the sum of x - x[0]: its error
// is one of the deviations.

#include <cmath>
#include <cstddef>

namespace xgrad::kernels {

/// first + shift, where shift is the mean of what differs from first: the nearest number of the
/// dtype, and what is missing.
template <class T>
struct Mean {
  T nearest;
  double rest;
  Mean(T first, double shift)
      : nearest(static_cast<T>(static_cast<double>(first) + shift)),
        rest((static_cast<double>(first) - static_cast<double>(nearest)) + shift) {}
};

/// Of one row, computed in double and scaled by a power of two so that no square leaves the range.
struct ScaledMoments {
  double scale = 1;
  double mean = 0, rest = 0;  ///< of x / scale
  double squares = 0;         ///< the sum of (x / scale - mean - rest)^2

  /// If not centred, the mean counts as 0.
  template <class T>
  ScaledMoments(std::size_t n, const T* x, bool centred);
};

/// Of each row the sum of squared deviations over `degrees`, or the root of that.
template <class T>
void variance(std::size_t rows, std::size_t n, const T* x, double degrees, bool root, T* y);

}  // namespace xgrad::kernels
