#pragma once
// Matrix products, which are BLAS's.

#include <cstddef>

namespace xgrad::kernels {

/// c = op(a) op(b) * alpha + c * beta; row-major; op(a) is (m, k), op(b) (k, n), c (m, n).  lda,
/// ldb and ldc are the distances between rows as stored, so transposes and slices need no copies.
/// With beta 0, c may hold garbage.  With a bias (n,), c = op(a) op(b) * alpha + bias in each row,
/// whatever beta is.  Any size may be 0.  ShapeError for a size that BLAS cannot count (int).  Runs
/// on the calling thread.
template <class T>
void gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, T alpha,
          const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc,
          const T* bias = nullptr);

/// The same, cut across threads by blocks of c's rows or columns.  The cut depends on the sizes
/// alone.
template <class T>
void gemm_parallel(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                   T alpha, const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c,
                   std::size_t ldc, const T* bias = nullptr);

}  // namespace xgrad::kernels
