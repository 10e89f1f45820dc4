#pragma once
// Matrix products: the one place that calls BLAS.

#include <cstddef>
#include <string>

namespace xgrad::kernels {

/// c = op(a) op(b) * alpha + c * beta; row-major; op(a) is (m, k), op(b) (k, n), c (m, n).  lda,
/// ldb and ldc are the distances between rows as stored, so transposes and slices need no copies.
/// With beta 0, c may hold garbage.  Any size may be 0. Runs on the calling thread.
template <class T>
void gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, T alpha,
          const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc);

/// The same, cut across threads by blocks of c's rows or columns.  The cut depends on the sizes
/// alone.
template <class T>
void gemm_parallel(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                   T alpha, const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c,
                   std::size_t ldc);

/// OpenBLAS' own threads do badly at our sizes and would compete with ours.
void use_one_blas_thread();

/// What BLAS says of itself: "OpenBLAS SkylakeX", or "unknown".
std::string blas_name();

}  // namespace xgrad::kernels
