#pragma once
// Loops along one row, a SIMD register at a time: what softmax, norms and losses are made of.
//
// The last register of a row is loaded so that it ends with the row, and overlaps the one before;
// sums and maxima leave out the lanes that they have seen.  Rows shorter than a register are copied
// into one (RowIn, RowOut).

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>
#include <xgrad/autograd/kernels/lines.hpp>

namespace xgrad::kernels {

template <class T>
struct AllLanes {
  simd::Batch<T> operator()(const simd::Batch<T>& v, const simd::Batch<T>&) const { return v; }
};

// Calls body(i, keep) for the registers of a row of n that begin at elements i.  keep(v, other) is
// v in lanes that belong to the row and are new, else other.
template <class T, class F>
void for_row_lanes(std::size_t n, const F& body) {
  constexpr std::size_t width = simd::Batch<T>::size;
  if (n < width) {
    if (n > 0)
      body(std::size_t{0}, SomeLanes<T>::first(n));
    return;
  }
  std::size_t i = 0;
  for (; i + width <= n; i += width)
    body(i, AllLanes<T>());
  if (i < n)
    body(n - width, SomeLanes<T>::last(n - i));
}

/// Calls body(i) for the registers of a row of n that begin at elements i; they may overlap.
template <class T, class F>
void for_row(std::size_t n, const F& body) {
  for_row_lanes<T>(n, [&](std::size_t i, const auto&) { body(i); });
}

/// row[i] = f(i, row[i]) for each register.  The last one is loaded before the one that it overlaps
/// is stored: a load that waited for such a store would cost more than all the rest.
template <class T, class F>
void update_row(std::size_t n, T* row, const F& f) {
  using Lanes = simd::Batch<T>;
  constexpr std::size_t width = Lanes::size;
  if (n < width) {
    store_first(f(std::size_t{0}, load_first(row, n)), row, n);
    return;
  }
  const std::size_t last = n - width;
  const Lanes at_end = n % width == 0 ? Lanes(0) : f(last, Lanes::load_unaligned(row + last));
  for (std::size_t i = 0; i + width <= n; i += width)
    f(i, Lanes::load_unaligned(row + i)).store_unaligned(row + i);
  if (n % width != 0)
    at_end.store_unaligned(row + last);
}

/// A row to read: itself, or if it is shorter than a register a padded copy.
template <class T>
class RowIn {
 public:
  RowIn(const T* row, std::size_t n) : data_(row) {
    if (n < width) {
      std::fill(std::copy_n(row, n, padded_), padded_ + width, T(0));
      data_ = padded_;
    }
  }
  RowIn(const RowIn&) = delete;
  RowIn& operator=(const RowIn&) = delete;
  simd::Batch<T> operator[](std::size_t i) const {
    return simd::Batch<T>::load_unaligned(data_ + i);
  }

 private:
  static constexpr std::size_t width = simd::Batch<T>::size;
  const T* data_;
  alignas(64) T padded_[width];
};

/// A row to read that may be absent (null), and then has `value` everywhere.
template <class T>
class OptionalRow {
 public:
  OptionalRow(const T* data, std::size_t n, T value)
      : filled_(data == nullptr ? n : 0, value), row_(data == nullptr ? filled_.data() : data, n) {}
  simd::Batch<T> operator[](std::size_t i) const { return row_[i]; }

 private:
  std::vector<T> filled_;
  RowIn<T> row_;
};

/// A row to write: itself, or if it is shorter than a register a buffer that is copied back at the
/// end.
template <class T>
class RowOut {
 public:
  RowOut(T* row, std::size_t n) : row_(row), data_(row), n_(n) {
    if (n < width)
      data_ = padded_;
  }
  RowOut(const RowOut&) = delete;
  RowOut& operator=(const RowOut&) = delete;
  ~RowOut() {
    if (n_ < width)
      std::copy_n(padded_, n_, row_);
  }
  void set(std::size_t i, const simd::Batch<T>& v) { v.store_unaligned(data_ + i); }

 private:
  static constexpr std::size_t width = simd::Batch<T>::size;
  T* row_;
  T* data_;
  std::size_t n_;
  alignas(64) T padded_[width];
};

/// Registers that are summed before their sum joins the total, which is kept in double: so the
/// error of a sum does not grow with the length of the row.
inline constexpr std::size_t sum_block = 16;

/// The sums over a row of what each body(i) returns for the register that begins at element i.
template <class T, class... F>
std::array<double, sizeof...(F)> row_sums(std::size_t n, const F&... bodies) {
  using Lanes = simd::Batch<T>;
  constexpr std::size_t width = Lanes::size, count = sizeof...(F);
  std::array<double, count> total{};
  for (std::size_t begin = 0; begin == 0 || begin < n; begin += sum_block * width) {
    const std::size_t length = std::min(sum_block * width, n - begin);
    std::array<Lanes, count> sum;
    sum.fill(Lanes(0));
    const auto step = [&](std::size_t i, const auto& keep) {
      std::size_t k = 0;
      ((sum[k] = sum[k] + keep(bodies(i), Lanes(0)), ++k), ...);
    };
    if (length >= width || begin == 0)
      for_row_lanes<T>(length, [&](std::size_t i, const auto& keep) { step(begin + i, keep); });
    else  // the rest of a long row: its only register ends with the row
      step(n - width, SomeLanes<T>::last(length));
    for (std::size_t k = 0; k < count; ++k)
      total[k] += static_cast<double>(add_lanes<T>(sum[k]));
  }
  return total;
}
template <class T, class F>
double row_sum(std::size_t n, const F& body) {
  return row_sums<T>(n, body)[0];
}

/// Rows that kernels take through each of their steps together.  A step ends in a sum or maximum
/// that the next one waits for; rows do not wait for each other.
inline constexpr std::size_t row_group = 16;

/// Calls f(first, count) for groups of rows begin ... end - 1.
template <class F>
void for_row_groups(std::size_t begin, std::size_t end, const F& f) {
  for (std::size_t r = begin; r < end; r += row_group)
    f(r, std::min(row_group, end - r));
}

/// v[k] = f(v[k]), on registers.
template <class T, class F>
void map_group(std::array<T, row_group>& v, const F& f) {
  static_assert(row_group % simd::Batch<T>::size == 0);
  for (std::size_t k = 0; k < row_group; k += simd::Batch<T>::size)
    f(simd::Batch<T>::load_unaligned(v.data() + k)).store_unaligned(v.data() + k);
}

/// The largest element of a row of n > 0.  NaNs may or may not be seen.
template <class T>
T row_max(std::size_t n, const RowIn<T>& x) {
  using Lanes = simd::Batch<T>;
  const Lanes lowest(-std::numeric_limits<T>::infinity());
  Lanes largest = lowest;
  for_row_lanes<T>(n, [&](std::size_t i, const auto& keep) {
    largest = xsimd::max(largest, keep(x[i], lowest));
  });
  return combine_lanes<T>(largest, [](T a, T b) { return a > b ? a : b; });
}

/// One number for each row of a group.
template <class T>
using Group = std::array<T, row_group>;

/// The largest elements of rows of n > 0.
template <class T>
Group<T> row_maxima(std::size_t count, std::size_t n, const T* x) {
  Group<T> max;
  for (std::size_t k = 0; k < count; ++k)
    max[k] = row_max(n, RowIn<T>(x + k * n, n));
  return max;
}

/// out = exp(x - shift); returns the sum.
template <class T>
double row_exponentials(std::size_t n, const T* x, T shift, T* out) {
  const RowIn<T> in(x, n);
  RowOut<T> to(out, n);
  return row_sum<T>(n, [&](std::size_t i) {
    const simd::Batch<T> e = exp(in[i] - simd::Batch<T>(shift));
    to.set(i, e);
    return e;
  });
}

/// log(sum(exp(x))) of each row, in two parts: the maximum, and log(sum(exp(x - max))).
template <class T>
struct LogSums {
  Group<T> max, log_sum{};

  LogSums(std::size_t count, std::size_t n, const T* x) : max(row_maxima(count, n, x)) {
    for (std::size_t k = 0; k < count; ++k) {
      const RowIn<T> row(x + k * n, n);
      log_sum[k] = static_cast<T>(
          row_sum<T>(n, [&](std::size_t i) { return exp(row[i] - simd::Batch<T>(max[k])); }));
    }
    map_group(log_sum, [](const simd::Batch<T>& sum) { return log(sum); });
  }
};

}  // namespace xgrad::kernels
