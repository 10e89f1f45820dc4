#include <xgrad/autograd/kernels/gemm.hpp>

#include <algorithm>
#include <vector>
#include <xgrad/autograd/kernels/gemm_pack.hpp>
#include <xgrad/autograd/kernels/gemm_tile.hpp>
#include <xgrad/autograd/kernels/gemv.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/memory.hpp>

namespace xgrad::kernels {
namespace {

// How many rows of a, columns of b and terms of each sum are taken at a time.  A block of a and one
// of b stay in the second-level cache.
constexpr std::size_t block_rows = 96, block_columns = 256, block_depth = 384;
// The distance between rows that are copied: not a power of two, which would put them on top of
// each other in the cache.
constexpr std::size_t copy_stride = block_depth + 16;
static_assert(block_rows <= block_depth);  // a may stand transposed

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

// c (m, n) = op(a) op(b) * alpha + added * beta, where n <= block_columns and k <= block_depth.
template <class T>
void multiply_block(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, Strip<T> s,
                    std::size_t lda, std::size_t ldb) {
  constexpr std::size_t panel = tile_columns<T>;
  thread_local Scratch<T> scratch;
  const Strip<T> whole = s;
  // Few rows do not make up for a copy of b, nor few columns for one of a.
  const bool pack_b = transpose_b || m > 64, copy_a = n >= 192;
  T* const packed = at_least(s.k * ((n + panel - 1) / panel * panel), scratch.b);
  for (std::size_t i = 0; i < m; i += block_rows) {
    const std::size_t rows = std::min(block_rows, m - i);
    const T* const a = whole.a + i * (transpose_a ? 1 : lda);
    s.a = a;
    s.a_row = transpose_a ? 1 : lda;
    s.a_column = transpose_a ? lda : 1;
    if (copy_a) {
      T* const copy = at_least(block_depth * copy_stride, scratch.a);
      for (std::size_t r = 0; r < (transpose_a ? s.k : rows); ++r)
        std::copy_n(a + r * lda, transpose_a ? rows : s.k, copy + r * copy_stride);
      s.a = copy;
      (transpose_a ? s.a_column : s.a_row) = copy_stride;
    }
    for (std::size_t j = 0; j < n; j += panel) {
      s.columns = std::min(panel, n - j);
      s.b = whole.b + j * (transpose_b ? ldb : 1);
      s.ldb = ldb;
      if (pack_b || s.columns < panel) {
        T* const to = packed + j * s.k;
        if (i == 0)
          pack_panel(transpose_b, s.k, s.columns, s.b, ldb, to);
        s.b = to;
        s.ldb = panel;
      }
      s.c = whole.c + i * s.ldc + j;
      s.added = whole.added + i * s.added_row + j;
      multiply_strip(rows, s);
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

}  // namespace

template <class T>
void gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, T alpha,
          const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc,
          const T* bias) {
  if (m == 0 || n == 0)
    return;
  if (m == 1 && (!transpose_a || lda == 1)) {
    if (bias != nullptr)
      std::copy_n(bias, n, c);
    gemv(transpose_b, n, k, alpha, a, b, ldb, bias != nullptr ? T(1) : beta, c);
    return;
  }
  const std::size_t blocks = std::max<std::size_t>(1, (k + block_depth - 1) / block_depth);
  const std::size_t depth = std::max<std::size_t>(1, (k + blocks - 1) / blocks);
  for (std::size_t j = 0; j < n; j += block_columns)
    for (std::size_t p = 0; p < k || p == 0; p += depth) {
      Strip<T> s{};
      s.k = std::min(depth, k - p);
      s.alpha = alpha;
      s.a = a + p * (transpose_a ? lda : 1);
      s.b = b + p * (transpose_b ? 1 : ldb) + j * (transpose_b ? ldb : 1);
      s.added = s.c = c + j;
      s.added_row = s.ldc = ldc;
      s.beta = p > 0 ? T(1) : beta;
      if (p == 0 && bias != nullptr) {
        s.added = bias + j;
        s.added_row = 0;
        s.beta = T(1);
      }
      multiply_block(transpose_a, transpose_b, m, std::min(block_columns, n - j), s, lda, ldb);
    }
}

template <class T>
void gemm_parallel(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                   T alpha, const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c,
                   std::size_t ldc, const T* bias) {
  if (m == 0 || n == 0)
    return;
  const Cut pieces = cut(m, n, k);
  parallel(pieces.pieces, [&](std::size_t piece) {
    const std::size_t begin = piece * pieces.block;
    if (pieces.by_rows)
      gemm(transpose_a, transpose_b, std::min(pieces.block, m - begin), n, k, alpha,
           a + begin * (transpose_a ? 1 : lda), lda, b, ldb, beta, c + begin * ldc, ldc, bias);
    else
      gemm(transpose_a, transpose_b, m, std::min(pieces.block, n - begin), k, alpha, a, lda,
           b + begin * (transpose_b ? ldb : 1), ldb, beta, c + begin, ldc,
           bias == nullptr ? nullptr : bias + begin);
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
