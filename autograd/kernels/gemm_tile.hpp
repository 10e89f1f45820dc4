#pragma once
// The inner loop of matrix products: a tile of c that stays in registers while its sums grow.

#include <algorithm>
#include <cstddef>
#include <xgrad/autograd/kernels/simd.hpp>

namespace xgrad::kernels {

/// Rows and columns of the largest tile.  Its sums take three quarters of the registers; what is
/// left holds a row of b and one element of a.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr std::size_t tile_rows = 12;
#else
inline constexpr std::size_t tile_rows = 6;
#endif
template <class T>
inline constexpr std::size_t tile_columns = 2 * simd::Batch<T>::size;

/// c = a b * alpha + added * beta for as many columns as a tile has, or fewer: then b has its other
/// columns in memory all the same.  Distances between rows of a, and between its columns, are
/// given, so a may stand transposed; `added` may be c itself, or one row for all (distance 0).
template <class T>
struct Strip {
  std::size_t k, columns;
  T alpha, beta;
  const T* a;
  std::size_t a_row, a_column;
  const T* b;
  std::size_t ldb;
  const T* added;
  std::size_t added_row;
  T* c;
  std::size_t ldc;

  Strip below(std::size_t rows) const {
    Strip rest = *this;
    rest.a += rows * a_row;
    rest.added += rows * added_row;
    rest.c += rows * ldc;
    return rest;
  }
};

template <std::size_t rows, std::size_t registers, class T>
void multiply_tile(const Strip<T>& s) {
  using Lanes = simd::Batch<T>;
  constexpr std::size_t width = Lanes::size, groups = (rows + 3) / 4;
  Lanes sums[rows][registers];
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t v = 0; v < registers; ++v)
      sums[i][v] = Lanes(T(0));
  // One pointer for four rows: there are not enough general registers for one each.
  const T* a[groups];
  for (std::size_t g = 0; g < groups; ++g)
    a[g] = s.a + 4 * g * s.a_row;
  const T* b = s.b;
  for (std::size_t p = s.k; p > 0; --p, b += s.ldb) {
    Lanes y[registers];
    for (std::size_t v = 0; v < registers; ++v)
      y[v] = Lanes::load_unaligned(b + v * width);
    for (std::size_t i = 0; i < rows; ++i) {
      const Lanes x(a[i / 4][i % 4 * s.a_row]);
      for (std::size_t v = 0; v < registers; ++v)
        sums[i][v] = xsimd::fma(x, y[v], sums[i][v]);
    }
    for (std::size_t g = 0; g < groups; ++g)
      a[g] += s.a_column;
  }
  const Lanes alpha(s.alpha), beta(s.beta);
  for (std::size_t i = 0; i < rows; ++i) {
    const T* added = s.added + i * s.added_row;
    T* const c = s.c + i * s.ldc;
    T* to = c;
    alignas(64) T padded[registers * width];
    if (s.columns < registers * width) {
      if (s.beta != T(0))
        std::copy_n(added, s.columns, padded);
      added = to = padded;
    }
    for (std::size_t v = 0; v < registers; ++v) {
      Lanes x = sums[i][v] * alpha;
      if (s.beta != T(0))  // else what is there may be garbage
        x = xsimd::fma(beta, Lanes::load_unaligned(added + v * width), x);
      x.store_unaligned(to + v * width);
    }
    if (to == padded)
      std::copy_n(padded, s.columns, c);
  }
}

/// The rows of a strip, in tiles of so many rows and then of fewer.
template <std::size_t rows = tile_rows, class T>
void multiply_strip(std::size_t m, Strip<T> s) {
  std::size_t tiles = m / rows;
  if (rows > 8 && tiles > 0 && m % rows > 0 && m % rows <= 4)
    --tiles;  // two tiles of 8 are faster than one of 12 and one of 4
  for (std::size_t i = 0; i < tiles; ++i, s = s.below(rows))
    if (s.columns <= simd::Batch<T>::size)
      multiply_tile<rows, 1>(s);
    else
      multiply_tile<rows, 2>(s);
  if constexpr (rows > 1)
    if (m > tiles * rows)
      multiply_strip<(rows > 8 ? 8 : rows > 4 ? 4 : rows / 2)>(m - tiles * rows, s);
}

}  // namespace xgrad::kernels
