#pragma once
// Products with a right operand that is packed once and then used many times.  BLAS would pack it
// for each of the small products of attention, which takes about as long as the product.
//
// Sums run in order of k, in pieces of 256 that are added to c one after the other.

#include <algorithm>
#include <array>
#include <cstddef>
#include "simd.hpp"

namespace xgrad::kernels {

// The rows of c that are summed at once: each takes two registers, and a few must be left.
#if defined(__AVX512F__) || defined(__aarch64__)  // 32 registers, else 16
inline constexpr std::size_t most_rows = 8;
#elif defined(__FMA__)
inline constexpr std::size_t most_rows = 6;
#else  // a product takes one more register before it is added
inline constexpr std::size_t most_rows = 4;
#endif

/// A range of sizes: begin, ..., end - 1.
struct Range {
  std::size_t begin, end;
};

/// A matrix (k, n) in panels of `width` columns.  Row i of panel p begins at data + (p * stride +
/// i) * width, on a register's border; the last panel is padded with zeros.
template <class T, class = simd::Arch>
struct Panels {
  static constexpr std::size_t width = 2 * simd::Batch<T>::size;

  T* data;
  std::size_t k, n, stride;

  static constexpr std::size_t size(std::size_t k, std::size_t n) {
    return (n + width - 1) / width * width * k;
  }
  Panels rows(Range r) const {  // (data may be null if n is 0)
    return {data + (n == 0 ? 0 : r.begin * width), r.end - r.begin, n, stride};
  }
  /// From a multiple of `width` on.
  Panels columns(Range r) const { return {data + r.begin * stride, k, r.end - r.begin, stride}; }
};

/// A strided matrix: element (i, j) is data[i * row + j * column].
template <class T>
struct Strided {
  const T* data;
  std::size_t row, column;
};

/// Packs x (k, n) into data, of Panels::size(k, n) elements.
template <class T>
Panels<T> pack(std::size_t k, std::size_t n, const Strided<T>& x, T* data) {
  constexpr std::size_t width = Panels<T>::width;
  for (std::size_t j = 0; j < n; j += width) {
    const std::size_t columns = std::min(width, n - j);
    T* const panel = data + j * k;
    if (columns < width)
      std::fill_n(panel, k * width, T(0));
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t c = 0; c < columns; ++c)
        panel[i * width + c] = x.data[i * x.row + (j + c) * x.column];
  }
  return {data, k, n, k};
}

/// c (rows, width) = a b * alpha, or is added to c, for elements k of the sums; b is a panel.
template <std::size_t rows, class V, class T>
void multiply_panel(Range k, T alpha, const Strided<T>& a, const T* b, bool add, T* c,
                    std::size_t ldc) {
  std::array<std::array<V, 2>, rows> sums;
  for (auto& sum : sums)
    sum.fill(V(T(0)));
  for (std::size_t r = 0; add && r < rows; ++r)
    __builtin_prefetch(c + r * ldc, 1);  // c is needed after the loop
  for (std::size_t i = k.begin; i < k.end; ++i) {
    const T* const bi = b + i * 2 * V::size;
    const V first = V::load_aligned(bi), second = V::load_aligned(bi + V::size);
    for (std::size_t r = 0; r < rows; ++r) {
      const V x(a.data[r * a.row + i * a.column]);
      sums[r][0] = xsimd::fma(x, first, sums[r][0]);
      sums[r][1] = xsimd::fma(x, second, sums[r][1]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < 2; ++j) {
      T* const y = c + r * ldc + j * V::size;
      const V product = sums[r][j] * V(alpha);
      (add ? V::load_unaligned(y) + product : product).store_unaligned(y);
    }
}

/// c (m, n) = a b * alpha, or is added to c.
template <class T>
void multiply(std::size_t m, T alpha, const Strided<T>& a, const Panels<T>& b, bool add, T* c,
              std::size_t ldc) {
  using V = simd::Batch<T>;
  // A piece of a panel and a chunk of a's rows stay in the cache nearest to the core.
  constexpr std::size_t width = Panels<T>::width, piece = 256, chunk = 96;
  for (std::size_t k = 0; k == 0 || k < b.k; k += piece)
    for (std::size_t first = 0; first < m; first += chunk)
      for (std::size_t j = 0; j < b.n; j += width) {
        const Range now{k, std::min(b.k, k + piece)};
        const auto some = [&]<std::size_t rows>(std::size_t i) {
          const Strided<T> left{a.data + i * a.row, a.row, a.column};
          const T* const panel = b.data + j * b.stride;
          T* const y = c + i * ldc + j;
          if (j + width <= b.n)
            return multiply_panel<rows, V>(now, alpha, left, panel, add || k > 0, y, ldc);
          alignas(64) T padded[rows * width];
          multiply_panel<rows, V>(now, alpha, left, panel, false, padded, width);
          for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t x = 0; x < b.n - j; ++x)
              y[r * ldc + x] = padded[r * width + x] + (add || k > 0 ? y[r * ldc + x] : T(0));
        };
        const std::size_t end = std::min(m, first + chunk);
        std::size_t i = first;
        for (; i + most_rows <= end && end - i != most_rows + 2; i += most_rows)
          some.template operator()<most_rows>(i);
        for (; i + 4 <= end; i += 4)
          some.template operator()<4>(i);
        for (; i < end; ++i)
          some.template operator()<1>(i);
      }
}

}  // namespace xgrad::kernels
