#pragma once
// Singular values: the one place that calls LAPACK.

#include <cstddef>

namespace xgrad::kernels {

/// a = u diag(s) vt, where k = min(m, n): a (m, n), u (m, k), s (k) falling, vt (k, n), all
/// row-major. All NaN if a is not finite.  Error if LAPACK gives up or is not there.
template <class T>
void svd(std::size_t m, std::size_t n, const T* a, T* u, T* s, T* vt);

}  // namespace xgrad::kernels
