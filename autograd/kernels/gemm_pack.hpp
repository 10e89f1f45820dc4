#pragma once
// A panel: some columns of a matrix, as many as a tile has, one row behind the other.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <xgrad/autograd/kernels/gemm_tile.hpp>

namespace xgrad::kernels {

/// Blocks of a matrix transposed, in registers of 128-bit lanes, within which all processors are
/// good at moving elements.
template <class T>
class Transposed {
 public:
  static constexpr std::size_t width = simd::Batch<T>::size, lane = 16 / sizeof(T);

  /// to[j * stride + i] = x[i * ldx + j] for `width` rows i of x and `lane` columns j.
  static void block(const T* x, std::size_t ldx, T* to, std::size_t stride) {
    std::array<Register, lane> r;
    for (std::size_t i = 0; i < lane; ++i)
      r[i] = Lanes<width>::load(x + i * ldx, ldx);
    for (std::size_t round = 1; round < lane; round *= 2) {
      const std::array<Register, lane> from = r;
      for (std::size_t i = 0; i < lane; i += 2) {
        r[i] = zip<0>(from[i / 2], from[(i + lane) / 2], every);
        r[i + 1] = zip<lane / 2>(from[i / 2], from[(i + lane) / 2], every);
      }
    }
    for (std::size_t i = 0; i < lane; ++i)
      *reinterpret_cast<typename Lanes<width>::InMemory*>(to + i * stride) = r[i];
  }

 private:
  // n elements in a register; lane l of it is loaded from row l * lane of x.
  template <std::size_t n>
  struct Lanes {
    typedef T Type __attribute__((vector_size(n * sizeof(T))));
    typedef T InMemory __attribute__((vector_size(n * sizeof(T)), aligned(alignof(T)), may_alias));

    static Type load(const T* x, std::size_t ldx) {
      if constexpr (n == lane)
        return *reinterpret_cast<const InMemory*>(x);
      else
        return join(Lanes<n / 2>::load(x, ldx), Lanes<n / 2>::load(x + n / 2 * ldx, ldx),
                    std::make_index_sequence<n>());
    }
    template <class Half, std::size_t... i>
    static Type join(Half a, Half b, std::index_sequence<i...>) {
      return __builtin_shufflevector(a, b, i...);
    }
  };
  using Register = typename Lanes<width>::Type;
  static constexpr std::make_index_sequence<width> every{};

  // In each lane a[first], b[first], a[first + 1], ... as long as there is room.
  template <std::size_t first, std::size_t... i>
  static Register zip(Register a, Register b, std::index_sequence<i...>) {
    return __builtin_shufflevector(a, b,
                                   (i % 2 * width + i / lane * lane + first + i % lane / 2)...);
  }
};

/// to (k, tile_columns) = op(b) (k, n), where op transposes if asked, and zeros to its right.
template <class T>
void pack_panel(bool transpose, std::size_t k, std::size_t n, const T* b, std::size_t ldb, T* to) {
  constexpr std::size_t columns = tile_columns<T>;
  std::size_t j = 0;  // columns that are done
  if (transpose) {
    using Block = Transposed<T>;
    const std::size_t whole = k / Block::lane * Block::lane;
    for (; j + Block::width <= n; j += Block::width) {
      for (std::size_t p = 0; p < whole; p += Block::lane)
        Block::block(b + j * ldb + p, ldb, to + p * columns + j, columns);
      for (std::size_t p = whole; p < k; ++p)
        for (std::size_t i = j; i < j + Block::width; ++i)
          to[p * columns + i] = b[i * ldb + p];
    }
    for (; j < n; ++j)
      for (std::size_t p = 0; p < k; ++p)
        to[p * columns + j] = b[j * ldb + p];
  } else if (n == columns) {
    for (std::size_t p = 0; p < k; ++p)
      std::memcpy(to + p * columns, b + p * ldb, columns * sizeof(T));
    return;
  } else {
    for (std::size_t p = 0; p < k; ++p)
      std::copy_n(b + p * ldb, n, to + p * columns);
  }
  if (n < columns)
    for (std::size_t p = 0; p < k; ++p)
      std::fill_n(to + p * columns + n, columns - n, T(0));
}

}  // namespace xgrad::kernels
