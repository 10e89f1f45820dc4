#pragma once
// Reductions of (outer, n, inner) over n to (outer, inner), and moments of rows.
//
// Lines are folded in blocks whose results are folded again, so that the rounding error of a sum
// grows with the logarithm of n.  Over n = 0 a reduction is its identity: 0 for sums, 1 for
// products, -inf for max, inf for min.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <xgrad/autograd/kernels/lines.hpp>

namespace xgrad::kernels {

/// All f(register), combined.
template <class T>
void reduce(Axis axis, const T* x, T* y, const auto& op, const auto& f) {
  if (axis.n == 0)
    std::fill_n(y, axis.outer * axis.inner, static_cast<T>(op.identity));
  // Along a row 32 or fewer elements are added one after the other, whatever registers the machine
  // has, because errors grow with that.
  constexpr std::size_t row = std::min<std::size_t>(1024, 32 * 4 * simd::Batch<T>::size);
  const std::size_t block = axis.inner == 1 ? row : 128, blocks = (axis.n + block - 1) / block;
  Scratch<T> partial(blocks > 1 ? axis.outer * blocks * axis.inner : 0);
  T* const out = blocks > 1 ? partial.data() : y;
  for_lines<T>(axis, block, [&](const auto& line) {
    line.result(out, line.fold(op, [&](auto i) { return f(i.load(x)); }));
  });
  if (blocks > 1)
    reduce<T>({axis.outer, blocks, axis.inner}, out, y, op, std::identity());
}

template <class T>
void sum(Axis axis, const T* x, T* y) {
  reduce<T>(axis, x, y, Add(), std::identity());
}
template <class T>
void prod(Axis axis, const T* x, T* y) {
  reduce<T>(axis, x, y, Multiply(), std::identity());
}
/// NaN if any element is NaN; so is min().
template <class T>
void max(Axis axis, const T* x, T* y) {
  reduce<T>(axis, x, y, Largest(), std::identity());
}
template <class T>
void min(Axis axis, const T* x, T* y) {
  reduce<T>(axis, x, y, Smallest(), std::identity());
}

/// Where along n > 0 the largest (or smallest) element is: the first of equals, or the first NaN.
template <class T>
void arg_extremum(Axis axis, const T* x, bool largest, std::int64_t* y) {
  Scratch<T> extremum(axis.outer * axis.inner);
  (largest ? max<T> : min<T>)(axis, x, extremum.data());
  const auto is = [](T v, T wanted) { return v == wanted || std::isnan(v); };
  for_narrow_groups(axis, [&](std::size_t begin, std::size_t width) {
    const std::size_t line = begin / (axis.n * axis.inner) * axis.inner + begin % axis.inner;
    const T* const wanted = extremum.data() + line;
    if (axis.inner == 1) {
      const T* const row = x + begin;
      y[line] = std::find_if(row, row + axis.n, [&](T v) { return is(v, *wanted); }) - row;
      return;
    }
    std::fill_n(y + line, width, 0);
    for (std::size_t j = axis.n; j-- > 0;)  // backwards: the first of equals is written last
      for (std::size_t c = 0; c < width; ++c)
        if (is(x[begin + j * axis.inner + c], wanted[c]))
          y[line + c] = static_cast<std::int64_t>(j);
  });
}

// ---- moments of a row ----
//
// A mean that is rounded to the dtype is off by up to half a last place of the elements, which can
// be more than their deviations.  So a mean has two parts, both from the sum of x - x[0]: its error
// is one of the deviations.

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

/// The moments of one row, computed in double and scaled by a power of two so that no square leaves
/// the range.
struct ScaledMoments {
  double scale = 1;
  double mean = 0, rest = 0;  ///< of x / scale
  double squares = 0;         ///< the sum of (x / scale - mean - rest)^2

  /// If not centred, the mean counts as 0.
  template <class T>
  ScaledMoments(std::size_t n, const T* x, bool centred) {
    double most = 0;
    for (std::size_t i = 0; i < n; ++i)
      most = std::max(most, std::abs(static_cast<double>(x[i])));
    if (most > 0 && std::isfinite(most))
      scale = std::ldexp(1.0, std::ilogb(most));
    Scratch<double> scaled(n);
    for (std::size_t i = 0; i < n; ++i)
      scaled[i] = static_cast<double>(x[i]) / scale;
    using V = simd::Batch<double>;
    const Row<double> row(n);
    if (centred && n > 0) {
      const V first(scaled[0]);
      const auto [sum] = row.sums([&](auto i) { return i.load(scaled.data()) - first; });
      const Mean<double> m(scaled[0], sum / static_cast<double>(n));
      mean = m.nearest;
      rest = m.rest;
    }
    squares = row.sums([&](auto i) {
      const V deviation = (i.load(scaled.data()) - V(mean)) - V(rest);
      return deviation * deviation;
    })[0];
  }
};

}  // namespace xgrad::kernels
