#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/svd.hpp>

namespace xgrad::kernels {
namespace {

// sgesdd and dgesdd by LAPACK's Fortran interface, where the length of a text comes last.
template <class T>
using Gesdd = void(const char* job, const int* m, const int* n, T* a, const int* lda, T* s, T* u,
                   const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork, int* iwork,
                   int* info, std::size_t job_length);

// Loaded when it is first asked for: OpenBLAS starts threads as it is loaded, and in a program that
// has threads every count of a Tensor's owners is an atomic operation.
void* load_lapack() {
  // What was there when this was compiled, and what a machine without it may have.
  constexpr std::array names{XGRAD_LAPACK, "libopenblas.so.0", "liblapack.so.3"};
  for (const char* const name : names)
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      // OpenBLAS' own threads would compete with ours.
      if (void* const set = dlsym(library, "openblas_set_num_threads"))
        reinterpret_cast<void (*)(int)>(set)(1);
      return library;
    }
  fail<Error>("svd: LAPACK, which it needs, cannot be loaded; looked for {}, {} and {}", names[0],
              names[1], names[2]);
}

template <class T>
Gesdd<T>& gesdd() {
  static void* const library = load_lapack();
  constexpr const char* name = std::is_same_v<T, float> ? "sgesdd_" : "dgesdd_";
  void* const function = dlsym(library, name);
  check<Error>(function != nullptr, "svd: there is no {} in the LAPACK of this machine", name);
  return *reinterpret_cast<Gesdd<T>*>(function);
}

}  // namespace

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
  constexpr int largest = std::numeric_limits<int>::max();
  check<Error>(std::max(m, n) <= largest, "svd: {} x {} is too large for LAPACK", m, n);
  Gesdd<T>& lapack = gesdd<T>();
  const int rows = static_cast<int>(n), columns = static_cast<int>(m), both = static_cast<int>(k);
  std::vector<T> overwritten(a, a + m * n), work(1);
  std::vector<int> integers(8 * k);
  const auto call = [&](int length) {
    int info = 0;
    lapack("S", &rows, &columns, overwritten.data(), &rows, s, vt, &rows, u, &both, work.data(),
           &length, integers.data(), &info, 1);
    check<Error>(info == 0, "svd: LAPACK's gesdd found no singular values ({})", info);
  };
  call(-1);  // how much memory it would like; older ones round the number down
  const double length = std::nextafter(work[0], std::numeric_limits<T>::max());
  check<Error>(length >= 1 && length <= largest, "svd: {} x {} is too large for LAPACK", m, n);
  work.resize(static_cast<std::size_t>(length));
  call(static_cast<int>(length));
}

template void svd(std::size_t, std::size_t, const float*, float*, float*, float*);
template void svd(std::size_t, std::size_t, const double*, double*, double*, double*);

}  // namespace xgrad::kernels
