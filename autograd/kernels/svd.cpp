#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <xtensor-blas/xblas.hpp>
// (kept apart from its neighbours so that the formatter does not sort it: it needs the one before)
#include <xtensor-blas/xlapack.hpp>
// (as above)
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/svd.hpp>

namespace xgrad::kernels {

// OpenBLAS' own threads would compete with ours.
static void use_one_blas_thread() {
  [[maybe_unused]] static const bool once = [] {
    if (void* const set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))
      reinterpret_cast<void (*)(int)>(set)(1);
    return true;
  }();
}

// LAPACK counts by columns, so it sees the transpose of a, v diag(s) ut, and what it returns by
// columns are vt and u by rows.
template <class T>
void svd(std::size_t m, std::size_t n, const T* a, T* u, T* s, T* vt) {
  const std::size_t k = std::min(m, n);
  if (k == 0)
    return;
  if (!std::all_of(a, a + m * n, [](T x) { return std::isfinite(x); })) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    std::fill_n(u, m * k, nan);
    std::fill_n(s, k, nan);
    std::fill_n(vt, k * n, nan);
    return;
  }
  use_one_blas_thread();
  using ByColumns = xt::xtensor<T, 2, xt::layout_type::column_major>;
  auto by_columns = ByColumns::from_shape(std::array<std::size_t, 2>{n, m});
  std::copy_n(a, m * n, by_columns.data());
  const auto [info, left, values, right] = xt::lapack::gesdd(by_columns, 'S');
  check<Error>(info == 0, "svd: LAPACK's gesdd found no singular values ({})", info);
  std::copy_n(left.data(), n * k, vt);
  std::copy_n(values.data(), k, s);
  std::copy_n(right.data(), k * m, u);
}

template void svd(std::size_t, std::size_t, const float*, float*, float*, float*);
template void svd(std::size_t, std::size_t, const double*, double*, double*, double*);

}  // namespace xgrad::kernels
