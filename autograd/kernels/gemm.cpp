#include <xgrad/autograd/kernels/gemm.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>
#include <xgrad/autograd/kernels/gemm_amx.hpp>
#include <xgrad/autograd/kernels/gemm_pack.hpp>
#include <xgrad/autograd/kernels/gemm_tile.hpp>
#include <xgrad/autograd/kernels/gemv.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/memory.hpp>
#include <xgrad/autograd/threads.hpp>

namespace xgrad::kernels {
namespace {

// How many rows of a, columns of b and terms of each sum are taken at a time.  A block of a and one
// of b stay in the second-level cache.
constexpr std::size_t block_rows = 96, block_columns = 256, block_depth = 384;
// Bytes of a cache's line, and between rows that are on top of each other in the first-level cache.
constexpr std::size_t line_bytes = 64, bad_distance = 4096;

// Memory of this thread, kept for its next product.
template <class T>
struct Scratch {
  std::vector<T, Allocator<T>> a, b;
};
template <class T>
T* at_least(std::size_t n, std::vector<T, Allocator<T>>& memory) {
  if (memory.size() < n)
    memory.resize(n);
  return memory.data();
}

// to = so many columns of a, if it stands transposed, or rows, next to each other.
template <class T>
void copy_strip(bool transposed, std::size_t rows, std::size_t k, const T* a, std::size_t lda,
                T* to) {
  const auto copy_columns = [&](auto n) {
    for (std::size_t p = 0; p < k; ++p)
      std::memcpy(to + p * n, a + p * lda, n * sizeof(T));
  };
  if (!transposed)
    for (std::size_t i = 0; i < rows; ++i)
      std::copy_n(a + i * lda, k, to + i * k);
  else if (rows == tile_rows)
    copy_columns(std::integral_constant<std::size_t, tile_rows>());
  else
    copy_columns(rows);
}

// Has the tile fetch x[first] and what follows while it is multiplied: a line of each row, or all
// lines of rows that stand one behind the other.
template <class T>
void look_ahead(const T* x, std::size_t first, std::size_t ldx, bool each_row, Tile<T>& s) {
  s.ahead = reinterpret_cast<std::uintptr_t>(x) + first * sizeof(T);
  s.ahead_step = each_row ? ldx * sizeof(T) : ldx == s.k ? line_bytes : 0;
}

// c (m, n) = op(a) op(b) * alpha + added * beta, where n <= block_columns and k <= block_depth.
template <class T>
void multiply_block(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, Tile<T> s,
                    std::size_t lda, std::size_t ldb) {
  constexpr std::size_t panel = tile_columns<T>, line = line_bytes / sizeof(T);
  thread_local Scratch<T> scratch;
  const Tile<T> whole = s;
  const std::size_t a_row = transpose_a ? 1 : lda, a_column = transpose_a ? lda : 1,
                    b_column = transpose_b ? ldb : 1;
  // Few rows do not make up for a copy of b, nor few columns for one of a.
  const bool pack_b = transpose_b || m > 64,
             copy_a = n >= 192 && (transpose_a || lda * sizeof(T) % bad_distance == 0);
  T* const packed = at_least(s.k * ((n + panel - 1) / panel * panel), scratch.b);
  T* const copied = copy_a ? at_least(s.k * std::min(m, block_rows), scratch.a) : nullptr;
  for (std::size_t block = 0; block < m; block += block_rows) {
    const std::size_t end = std::min(m, block + block_rows);
    for (std::size_t j = 0; j < n; j += panel) {
      s.columns = std::min(panel, n - j);
      s.b = whole.b + j * b_column;
      s.ldb = ldb;
      if (pack_b || s.columns < panel) {
        T* const to = packed + j * s.k;
        if (block == 0)
          pack_panel(transpose_b, s.k, s.columns, s.b, ldb, to);
        s.b = to;
        s.ldb = panel;
      }
      // How many columns of the next panel of b have been fetched.
      std::size_t fetched = block == 0 && j + panel < n ? 0 : panel;
      for (std::size_t i = block, rows; i < end; i += rows) {
        rows = next_tile_rows(end - i);
        s.a = whole.a + i * a_row;
        s.a_row = a_row;
        s.a_column = a_column;
        if (fetched < panel) {
          look_ahead(whole.b, (j + panel + fetched) * b_column, ldb, !transpose_b, s);
          fetched += line;
        } else if (j == 0 && i + rows < m) {
          // The next tile's rows of a.  If a stands transposed, from their last element on: the
          // first may be in a line with this tile's.
          look_ahead(s.a, (rows + (transpose_a ? tile_rows - 1 : 0)) * a_row, lda, transpose_a, s);
        } else {
          s.ahead_step = 0;
        }
        if (copy_a) {
          T* const to = copied + (i - block) * s.k;
          if (j == 0)
            copy_strip(transpose_a, rows, s.k, s.a, lda, to);
          s.a = to;
          (transpose_a ? s.a_column : s.a_row) = transpose_a ? rows : s.k;
        }
        s.c = whole.c + i * s.ldc + j;
        s.added = whole.added + i * s.added_row + j;
        multiply_tile(rows, s);
      }
    }
  }
}

// Where c is cut: into blocks of rows if it is taller than wide, else of columns.
struct Cut {
  bool by_rows;
  std::size_t block, pieces;
};

// The operand that is not cut is packed once for each piece.  Pieces end where panels do.
Cut cut(std::size_t m, std::size_t n, std::size_t k) {
  constexpr std::size_t least_work = 262'144, good_size = 192, most_pieces = 16, edge = 64;
  const bool by_rows = m >= n;
  const std::size_t size = by_rows ? m : n;
  // One row is as fast as the other operand is read: halves of it stay in the caches of two cores.
  const std::size_t worth =
      std::max<std::size_t>(m * n * k / (m == 1 ? least_work / 16 : least_work), 1);
  const std::size_t pieces =
      std::min(worth, std::clamp<std::size_t>(size / good_size, 2, most_pieces));
  const std::size_t block = ((size + pieces - 1) / pieces + edge - 1) / edge * edge;
  return {by_rows, block, (size + block - 1) / block};
}

// c = op(a) op(b) * alpha + (bias, or c * beta): the same bits for a piece of c as for all of it,
// if `amx` is the same and the piece begins at a multiple of `edge`.
template <class T>
void multiply(bool amx, bool transpose_a, bool transpose_b, std::size_t m, std::size_t n,
              std::size_t k, T alpha, const T* a, std::size_t lda, const T* b, std::size_t ldb,
              T beta, T* c, std::size_t ldc, const T* bias) {
  const std::size_t most_columns = amx ? amx_columns : block_columns;
  const std::size_t blocks = std::max<std::size_t>(1, (k + block_depth - 1) / block_depth);
  const std::size_t depth = amx ? amx_depth : std::max<std::size_t>(1, (k + blocks - 1) / blocks);
  for (std::size_t j = 0; j < n; j += most_columns)
    for (std::size_t p = 0; p < k || p == 0; p += depth) {
      Tile<T> s{};
      s.k = std::min(depth, k - p);
      s.alpha = alpha;
      s.a = a + p * (transpose_a ? lda : 1);
      s.b = b + p * (transpose_b ? 1 : ldb) + j * (transpose_b ? ldb : 1);
      s.added = s.c = c + j;
      s.ahead = reinterpret_cast<std::uintptr_t>(a);
      s.added_row = s.ldc = ldc;
      s.beta = p > 0 ? T(1) : beta;
      if (p == 0 && bias != nullptr) {
        s.added = bias + j;
        s.added_row = 0;
        s.beta = T(1);
      }
      const std::size_t all_columns = std::min(most_columns, n - j);
      const auto by_tiles = [&](std::size_t first_row, std::size_t rows, std::size_t first_column,
                                std::size_t columns) {
        Tile<T> t = s;
        t.a += first_row * (transpose_a ? 1 : lda);
        t.b += first_column * (transpose_b ? ldb : 1);
        t.added += first_row * s.added_row + first_column;
        t.c += first_row * ldc + first_column;
        multiply_block(transpose_a, transpose_b, rows, columns, t, lda, ldb);
      };
      if (!amx)
        by_tiles(0, m, 0, all_columns);
      else if constexpr (std::is_same_v<T, float>)
        multiply_amx(transpose_a, transpose_b, m, all_columns, s, lda, ldb, by_tiles);
    }
}

// Packing pays if every element is used often enough.
template <class T>
bool use_amx(std::size_t m, std::size_t n, std::size_t k) {
  return std::is_same_v<T, float> && m * n >= 32 * (m + n) && k >= 16 && has_amx();
}

// A row of c, whose sums have an order of their own.
bool is_row(std::size_t m, bool transpose_a, std::size_t lda) {
  return m == 1 && (!transpose_a || lda == 1);
}

}  // namespace

template <class T>
void gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, T alpha,
          const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc,
          const T* bias) {
  if (m == 0 || n == 0)
    return;
  if (is_row(m, transpose_a, lda)) {
    if (bias != nullptr)
      std::copy_n(bias, n, c);
    gemv(transpose_b, n, k, alpha, a, b, ldb, bias != nullptr ? T(1) : beta, c);
    return;
  }
  multiply(use_amx<T>(m, n, k), transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c,
           ldc, bias);
}

template <class T>
void gemm_parallel(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                   T alpha, const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c,
                   std::size_t ldc, const T* bias) {
  if (m == 0 || n == 0)
    return;
  const bool row = is_row(m, transpose_a, lda), amx = use_amx<T>(m, n, k);
  const auto piece = [&](std::size_t i, std::size_t rows, std::size_t j, std::size_t columns) {
    const T* const a_rows = a + i * (transpose_a ? 1 : lda);
    const T* const b_columns = b + j * (transpose_b ? ldb : 1);
    const T* const biases = bias == nullptr ? nullptr : bias + j;
    T* const to = c + i * ldc + j;
    if (row)
      gemm(transpose_a, transpose_b, rows, columns, k, alpha, a_rows, lda, b_columns, ldb, beta, to,
           ldc, biases);
    else
      multiply(amx, transpose_a, transpose_b, rows, columns, k, alpha, a_rows, lda, b_columns, ldb,
               beta, to, ldc, biases);
  };
  if (!row && on_one_thread()) {  // each operand is packed once
    piece(0, m, 0, n);
    return;
  }
  const Cut pieces = cut(m, n, k);
  parallel(pieces.pieces, [&](std::size_t p) {
    const std::size_t begin = p * pieces.block;
    if (pieces.by_rows)
      piece(begin, std::min(pieces.block, m - begin), 0, n);
    else
      piece(0, m, begin, std::min(pieces.block, n - begin));
  });
}

#define XGRAD_INSTANTIATE(T)                                                                      \
  template void gemm(bool, bool, std::size_t, std::size_t, std::size_t, T, const T*, std::size_t, \
                     const T*, std::size_t, T, T*, std::size_t, const T*);                        \
  template void gemm_parallel(bool, bool, std::size_t, std::size_t, std::size_t, T, const T*,     \
                              std::size_t, const T*, std::size_t, T, T*, std::size_t, const T*);
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)
#undef XGRAD_INSTANTIATE

}  // namespace xgrad::kernels

std::string xgrad::simd_name() {
  return std::string(simd::Arch::name()) + (kernels::has_amx() ? "+amx" : "");
}
