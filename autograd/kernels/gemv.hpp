#pragma once
// A row times a matrix.  gemm packs the matrix first, which for one row takes longer than the
// product.

#include <cstddef>

namespace xgrad::kernels {

/// y = x op(b) * alpha + y * beta: x (k,), op(b) (k, n), y (n,); ldb is the distance between rows
/// of b as stored.  With beta 0, y may hold garbage.  The result of element j does not
/// depend on n.
template <class T>
void gemv(bool transpose_b, std::size_t n, std::size_t k, T alpha, const T* x, const T* b,
          std::size_t ldb, T beta, T* y);

}  // namespace xgrad::kernels
