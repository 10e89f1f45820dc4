#pragma once
// The inner loop of matrix products: a tile of c that stays in registers while its sums grow.

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
struct Tile {
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

  // Memory that is needed soon: for each term of the sums one line of it is fetched.
  std::uintptr_t ahead, ahead_step;
};

template <std::size_t rows, std::size_t registers, class T>
void multiply_tile(const Tile<T>& s) {
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
  const auto add_term = [&]() {
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
    b += s.ldb;
  };
  // c's own lines are the first to be fetched.
  std::size_t p = std::min(s.k, rows);
  for (std::size_t i = 0; i < p; ++i) {
    add_term();
    for (std::size_t v = 0; v < registers; ++v)
      __builtin_prefetch(s.c + i * s.ldc + v * width, 1);
  }
  std::uintptr_t ahead = s.ahead;
  for (; p < s.k; ++p, ahead += s.ahead_step) {
    add_term();
    __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 2);
  }
  const bool whole = s.columns == registers * width, add = s.beta != T(0);
  alignas(64) T padded[rows][registers * width];
  if (!whole && add)
    for (std::size_t i = 0; i < rows; ++i)
      std::copy_n(s.added + i * s.added_row, s.columns, padded[i]);
  const T* const added = whole ? s.added : padded[0];
  T* const c = whole ? s.c : padded[0];
  const std::size_t added_row = whole ? s.added_row : registers * width,
                    ldc = whole ? s.ldc : registers * width;
  const Lanes alpha(s.alpha), beta(s.beta);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t v = 0; v < registers; ++v) {
      Lanes x = sums[i][v] * alpha;
      if (add)  // else what is there may be garbage
        x = xsimd::fma(beta, Lanes::load_unaligned(added + i * added_row + v * width), x);
      x.store_unaligned(c + i * ldc + v * width);
    }
  if (!whole)
    for (std::size_t i = 0; i < rows; ++i)
      std::copy_n(padded[i], s.columns, s.c + i * s.ldc);
}

/// How many of so many rows the next tile takes.
inline std::size_t next_tile_rows(std::size_t left) {
  if (tile_rows > 8 && left > tile_rows && left <= tile_rows + 4)
    return 8;  // two tiles of 8 are faster than one of 12 and one of 4
  for (const std::size_t rows : {tile_rows, std::size_t{8}, std::size_t{4}, std::size_t{2}})
    if (rows <= std::min(left, tile_rows))
      return rows;
  return 1;
}

/// The same for a number of rows that next_tile_rows() gives.
template <std::size_t most = tile_rows, class T>
void multiply_tile(std::size_t rows, const Tile<T>& s) {
  if (rows < most) {
    if constexpr (most > 1)
      multiply_tile<(most > 8 ? 8 : most > 4 ? 4 : most / 2)>(rows, s);
  } else if (s.columns <= simd::Batch<T>::size) {
    multiply_tile<most, 1>(s);
  } else {
    multiply_tile<most, 2>(s);
  }
}

}  // namespace xgrad::kernels
