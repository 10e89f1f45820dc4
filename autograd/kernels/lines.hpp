#pragma once
// One loop along lines, on which softmax, norms, losses and reductions are a few formulas each.
//
// A line is the elements of an array that differ in one dimension alone.  A body is written once,
// on SIMD registers, and serves both kinds of lines:
//
//   Row      its elements are contiguous: a register holds some of them, and a fold combines lanes
//   Columns  a group of neighbouring lines: each lane of a register holds an element of another
//   line
//
//   kernels::for_lines<T>(axis, axis.n, [&](const auto& line) {  // dx = y (g - sum(g y))
//     const auto sum = line.sum([&](auto i) { return i.load(g) * i.load(y); });
//     line.each([&](auto i) { i.store(dx, i.load(y) * (i.load(g) - sum)); });
//   });
//
// i is a place in arrays of the axis's shape: a register's (Whole), or that of fewer elements
// (Part).  The last place of a row's sum overlaps the one before (Last), so a body that stores
// within a sum must not overwrite what it loads.
//
// The order of a fold depends on the length and the register's width alone.  Each 16 registers of a
// row's sum are added to a total in double, so its error does not grow with the length.  A row's
// fold() has four chains, because a single one would wait for each result.  Columns are folded in
// trees of eight elements.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include "odometer.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace xgrad::kernels {

// ---- ways to combine two values: registers, or single elements ----

using xgrad::where;
template <std::floating_point T>
T where(bool condition, T a, T b) {
  return condition ? a : b;
}

struct Add {
  static constexpr double identity = 0;
  auto operator()(const auto& a, const auto& b) const { return a + b; }
};
struct Multiply {
  static constexpr double identity = 1;
  auto operator()(const auto& a, const auto& b) const { return a * b; }
};
// NaN stays once it is a, because comparisons with it are false.
struct Largest {
  static constexpr double identity = -std::numeric_limits<double>::infinity();
  auto operator()(const auto& a, const auto& b) const {
    return where((b > a) | xsimd::isnan(b), b, a);
  }
};
// Faster: of NaN and a number it may give either.
struct Larger : Largest {
  auto operator()(const auto& a, const auto& b) const { return where(a > b, a, b); }
};
struct Smallest {
  static constexpr double identity = std::numeric_limits<double>::infinity();
  auto operator()(const auto& a, const auto& b) const {
    return where((b < a) | xsimd::isnan(b), b, a);
  }
};

// ---- some of a register's lanes: v there, `other` elsewhere ----

// (The architecture is part of its name, because all libraries of a process share its data.)
template <class T, class = simd::Arch>
class SomeLanes {
 public:
  using V = simd::Batch<T>;
  static constexpr std::size_t width = V::size;

  static SomeLanes first(std::size_t n) { return SomeLanes(pattern.data() + 2 * width - n); }
  static SomeLanes last(std::size_t n) { return SomeLanes(pattern.data() + n); }
  V operator()(const V& v, const V& other) const { return xsimd::select(mask_, v, other); }

 private:
  explicit SomeLanes(const T* at) : mask_(V::load_unaligned(at) != V(0)) {}

  // As many zeros as there are lanes, as many ones, and zeros again.
  static constexpr std::array<T, 3 * width> pattern = [] {
    std::array<T, 3 * width> p{};
    std::fill_n(p.begin() + width, width, T(1));
    return p;
  }();

  typename V::batch_bool_type mask_;
};

// ---- places: keep() is v in the lanes that count, else `other` ----

template <class T>
struct Whole {
  using V = simd::Batch<T>;
  std::size_t at;
  V load(const T* p) const { return V::load_unaligned(p + at); }
  void store(T* p, const V& v) const { v.store_unaligned(p + at); }
  V keep(const V& v, const V&) const { return v; }
};
template <class T>
struct Part {
  using V = simd::Batch<T>;
  std::size_t at, count;
  V keep(const V& v, const V& other) const { return SomeLanes<T>::first(count)(v, other); }
#ifdef __AVX512F__
  __mmask16 mask() const { return static_cast<__mmask16>((1U << count) - 1); }
  V load(const float* p) const { return _mm512_maskz_loadu_ps(mask(), p + at); }
  V load(const double* p) const {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>(mask()), p + at);
  }
  void store(float* p, const V& v) const { _mm512_mask_storeu_ps(p + at, mask(), v); }
  void store(double* p, const V& v) const {
    _mm512_mask_storeu_pd(p + at, static_cast<__mmask8>(mask()), v);
  }
#else
  V load(const T* p) const { return load_first(p + at, count); }
  void store(T* p, const V& v) const { store_first(v, p + at, count); }
#endif
};
template <class T>
struct Last : Whole<T> {
  std::size_t count;  // lanes that the place before lacks
  auto keep(const auto& v, const auto& w) const { return SomeLanes<T>::last(count)(v, w); }
};

// ---- lines of n elements from element `from` of their array on; results go to element `to` of an
// array with an element for each line ----

template <class T>
class Row {
 public:
  using V = simd::Batch<T>;
  explicit Row(std::size_t n, std::size_t from = 0, std::size_t to = 0)
      : from_(from), end_(from + n), to_(to) {}

  /// f(i) at each place; it may overwrite what it loads.
  void each(const auto& f) const {
    std::size_t i = from_;
    for (; i + width <= end_; i += width)
      f(Whole<T>{i});
    if (i < end_)
      f(Part<T>{i, end_ - i});
  }

  /// All f(i), combined, in each lane.
  V fold(const auto& op, const auto& f) const {
    const V identity(static_cast<T>(op.identity));
    V a = identity, b = a, c = a, d = a;
    std::size_t i = from_;
    for (; i + 4 * width <= end_; i += 4 * width) {
      a = op(a, f(Whole<T>{i}));
      b = op(b, f(Whole<T>{i + width}));
      c = op(c, f(Whole<T>{i + 2 * width}));
      d = op(d, f(Whole<T>{i + 3 * width}));
    }
    for (; i + width <= end_; i += width)
      a = op(a, f(Whole<T>{i}));
    if (const Part<T> rest{i, end_ - i}; rest.count > 0)
      b = op(b, rest.keep(f(rest), identity));
    return V(combine_lanes<T>(op(op(a, b), op(c, d)), op));
  }

  /// The sum of each function.
  template <class... F>
  std::array<double, sizeof...(F)> sums(const F&... f) const {
    constexpr std::size_t block = 16 * width, count = sizeof...(F);
    std::array<double, count> total{};
    for (std::size_t begin = from_; begin < end_; begin += block) {
      const std::size_t end = std::min(end_, begin + block);
      std::array<V, count> sum;
      sum.fill(V(0));
      const auto add = [&](const auto& place) {
        std::size_t k = 0;
        ((sum[k] = sum[k] + place.keep(f(place), V(0)), ++k), ...);
      };
      std::size_t i = begin;
      for (; i + width <= end; i += width)
        add(Whole<T>{i});
      if (i < end && end_ - from_ < width)
        add(Part<T>{i, end - i});
      else if (i < end)
        add(Last<T>{{end - width}, end - i});
      for (std::size_t k = 0; k < count; ++k)
        total[k] += static_cast<double>(add_lanes<T>(sum[k]));
    }
    return total;
  }
  V sum(const auto& f) const { return V(static_cast<T>(sums(f)[0])); }
  /// 1 / the sum; 0 if that is 0.
  V inverse_sum(const auto& f) const {
    const double sum = sums(f)[0];
    return V(static_cast<T>(sum == 0 ? 0 : 1 / sum));
  }
  void result(T* y, const V& v) const { y[to_] = v.get(0); }

 private:
  static constexpr std::size_t width = V::size;
  std::size_t from_, end_, to_;
};

template <class T, class Place>
class Columns {
 public:
  using V = simd::Batch<T>;
  Columns(std::size_t n, std::size_t stride, const Place& from, const Place& to)
      : n_(n), stride_(stride), from_(from), to_(to) {}

  void each(const auto& f) const {
    for (std::size_t i = 0; i < n_; ++i)
      f(place(i));
  }
  V fold(const auto& op, const auto& f) const { return fold(op, f, 0, n_); }
  V sum(const auto& f) const {
    V total(0);
    for (std::size_t i = 0; i < n_; i += 128)
      total = total + fold(Add(), f, i, std::min(n_, i + 128));
    return total;
  }
  V inverse_sum(const auto& f) const {
    const V total = sum(f);
    return where(total == V(0), V(0), V(1) / total);
  }
  void result(T* y, const V& v) const { to_.store(y, v); }

 private:
  Place place(std::size_t i) const {
    Place p = from_;
    p.at += i * stride_;
    return p;
  }
  V fold(const auto& op, const auto& f, std::size_t i, std::size_t end) const {
    V total(static_cast<T>(op.identity));
    for (; i + 8 <= end; i += 8) {
      const auto v = [&](std::size_t k) { return f(place(i + k)); };
      total = op(total, op(op(op(v(0), v(1)), op(v(2), v(3))), op(op(v(4), v(5)), op(v(6), v(7)))));
    }
    for (; i < end; ++i)
      total = op(total, f(place(i)));
    return total;
  }

  std::size_t n_, stride_;
  Place from_, to_;
};

// ---- all lines ----

/// f(r) for each of the rows of n elements, on threads if worthwhile.
void for_rows(std::size_t rows, std::size_t n, const auto& f) {
  const std::size_t grain = std::max<std::size_t>(1, 8192 / std::max<std::size_t>(1, n));
  parallel_for(rows, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r)
      f(r);
  });
}

/// second(r, first(r)) for rows begin ... end - 1.  first() is a long chain of dependent steps, so
/// it is called for 16 rows at once, whose chains the processor overlaps.
void for_row_groups(std::size_t begin, std::size_t end, const auto& first, const auto& second) {
  std::array<decltype(first(begin)), 16> results;
  for (std::size_t r = begin; r < end; r += results.size()) {
    const std::size_t count = std::min(results.size(), end - r);
    for (std::size_t k = 0; k < count; ++k)
      results[k] = first(r + k);
    for (std::size_t k = 0; k < count; ++k)
      second(r + k, results[k]);
  }
}

/// body(line) for the lines of an array, or for parts of them of at most `most` elements.
template <class T>
void for_lines(Axis a, std::size_t most, const auto& body) {
  if (a.numel() == 0)
    return;
  constexpr std::size_t width = simd::Batch<T>::size;
  const std::size_t parts = (a.n + most - 1) / most, groups = (a.inner + width - 1) / width;
  const std::size_t work = std::min(a.n, most) * std::min(a.inner, width);
  // (A division takes as long as a short line.)
  const auto divided = [](std::size_t k, std::size_t by) {
    return by == 1 ? std::pair(k, std::size_t{0}) : std::pair(k / by, k % by);
  };
  for_rows(a.outer * parts * groups, work, [&](std::size_t k) {
    const auto [part, group] = divided(k, groups);
    const auto [outer, inside] = divided(part, parts);
    const std::size_t begin = inside * most, n = std::min(most, a.n - begin);
    const std::size_t column = group * width, count = a.inner - column;
    const std::size_t from = (outer * a.n + begin) * a.inner + column;
    const std::size_t to = part * a.inner + column;
    if (a.inner == 1)
      body(Row<T>(n, from, to));
    else if (count >= width)
      body(Columns<T, Whole<T>>(n, a.inner, {from}, {to}));
    else
      body(Columns<T, Part<T>>(n, a.inner, {from, count}, {to, count}));
  });
}

// ---- element by element, for results that depend on the previous one ----

/// f(begin, width) for groups of at most 64 neighbouring lines, in the order of memory: element i
/// of the group's first line is at begin + i * inner, followed by those of the others.
void for_narrow_groups(Axis a, const auto& f) {
  const std::size_t most = std::min<std::size_t>(a.inner, 64);
  const std::size_t groups = a.inner == 0 ? 0 : (a.inner + most - 1) / most;
  for_rows(a.outer * groups, a.n * most, [&](std::size_t k) {
    const std::size_t column = k % groups * most;
    f(k / groups * a.n * a.inner + column, std::min(most, a.inner - column));
  });
}

/// y_i = first(i), then next(y_(i-1), i), along each line from the front or, in reverse, from the
/// back; i is a place in y.  y_(i-1) is kept in double.
template <class T>
void scan(Axis a, bool reverse, T* y, const auto& first, const auto& next) {
  for_narrow_groups(a, [&](std::size_t begin, std::size_t width) {
    std::array<double, 64> before;
    for (std::size_t k = 0; k < a.n; ++k) {
      const std::size_t i = begin + (reverse ? a.n - 1 - k : k) * a.inner;
      for (std::size_t c = 0; c < width; ++c) {
        before[c] = k == 0 ? first(i + c) : next(before[c], i + c);
        y[i + c] = static_cast<T>(before[c]);
      }
    }
  });
}

// ---- shared by several ops ----

/// The largest element; NaN may be missed.
template <class T>
simd::Batch<T> largest(const auto& line, const T* x) {
  return line.fold(Larger(), [&](auto i) { return i.load(x); });
}

/// y = exp(x - shift), as a function of places that gives y.
template <class T>
auto exponentials(const T* x, const simd::Batch<T>& shift, T* y) {
  return [=](auto i) {
    const simd::Batch<T> e = exp(i.load(x) - shift);
    i.store(y, e);
    return e;
  };
}

// ---- reductions of (outer, n, inner) over n to (outer, inner) ----
//
// Lines are folded in blocks whose results are folded again, so the rounding error of a sum grows
// with the logarithm of n.  Over n = 0 a reduction is its identity: 0 for sums, 1 for products,
// -inf for max, inf for min.

/// All f(register), combined.
template <class T>
void reduce(Axis axis, const T* x, T* y, const auto& op, const auto& f) {
  if (axis.n == 0)
    std::fill_n(y, axis.outer * axis.inner, static_cast<T>(op.identity));
  // Along a row at most 32 elements are added one after the other on any machine, because errors
  // grow with that number.
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

/// The index along n > 0 of the largest (or smallest) element: the first of equals, or of NaN.
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
    for (std::size_t j = axis.n; j-- > 0;)  // so that the first of equals is written last
      for (std::size_t c = 0; c < width; ++c)
        if (is(x[begin + j * axis.inner + c], wanted[c]))
          y[line + c] = static_cast<std::int64_t>(j);
  });
}

// ---- moments of a row ----
//
// A mean rounded to the dtype is wrong by up to half a last place of the elements, which can exceed
// their deviations.  So a mean has two parts, both from the sum of x - x[0]: its error is one of
// the deviations.

/// first + shift, where shift is the mean of the differences from first: the nearest number of the
/// dtype, and the remainder.
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
