#include <dlfcn.h>

#include <algorithm>
#include <climits>
#include <complex>
#include <mutex>
#include <string_view>
#include <xtensor-blas/xblas_config.hpp>
// (kept apart from its neighbours so that the formatter does not sort it)
#include <xflens/cxxblas/cxxblas.cxx>
// (as above)
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/gemm.hpp>
#include <xgrad/autograd/kernels/gemv.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/kernels/simd.hpp>
#include <xgrad/autograd/threads.hpp>

namespace xgrad::kernels {
namespace {

// A function of the BLAS that is loaded, or null if this BLAS has none of that name.
template <class F>
F* find_in_blas(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

// Keeps the BLAS that is loaded from using threads of its own, which would compete with ours.  As
// the program starts: after a fork, OpenBLAS would start them again, and end the process if it
// cannot.
[[maybe_unused]] const bool one_blas_thread = [] {
  for (const char* const name :
       {"openblas_set_num_threads", "MKL_Set_Num_Threads", "bli_thread_set_num_threads"})
    if (auto* const set_num_threads = find_in_blas<void(int)>(name))
      set_num_threads(1);
  // OpenBLAS has started threads as it was loaded.
  if (auto* const shut_down = find_in_blas<int()>("blas_thread_shutdown_"))
    shut_down();
  return true;
}();

// Whether this is an OpenBLAS built for one thread (libopenblas-serial).  It hands out its buffers
// without a lock, so two threads that multiply at a time may get the same one, and wrong numbers.
bool has_no_locks() {
  auto* const config = find_in_blas<char*()>("openblas_get_config");
  return config != nullptr &&
         std::string_view(config()).find("SINGLE_THREADED") != std::string_view::npos;
}

using Int = xt::blas_index_t;

void check_sizes(std::initializer_list<std::size_t> sizes) {
  for (const std::size_t size : sizes)
    check<ShapeError>(size <= static_cast<std::size_t>(INT_MAX),
                      "matrix product: size {} is beyond what BLAS can count ({})", size, INT_MAX);
}

// Where c is cut: into blocks of rows if it is taller than wide, else of columns.
struct Cut {
  bool by_rows;
  std::size_t block, pieces;
};

// BLAS packs the operand that is not cut once for each piece.  Pieces end where its own blocks do.
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

// Locked if the BLAS that is loaded can only be called by one thread at a time.
std::unique_lock<std::mutex> turn_at_blas() {
  static const bool needed = has_no_locks();
  static std::mutex mutex;
  return needed ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

}  // namespace

template <class T>
void gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, T alpha,
          const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc,
          const T* bias) {
  if (m == 0 || n == 0)
    return;
  if (bias != nullptr) {
    for (std::size_t i = 0; i < m; ++i)
      std::copy_n(bias, n, c + i * ldc);
    beta = T(1);
  }
  if (k == 0) {  // nothing to add: BLAS may refuse the sizes
    for (std::size_t i = 0; i < m; ++i)
      for (T* x = c + i * ldc; x != c + i * ldc + n; ++x)
        *x = beta == T(0) ? T(0) : beta * *x;
    return;
  }
  check_sizes({m, n, k, lda, ldb, ldc});
  if (m == 1 && (!transpose_a || lda == 1)) {
    gemv(transpose_b, n, k, alpha, a, b, ldb, beta, c);
    return;
  }
  const auto transpose = [](bool yes) { return yes ? cxxblas::Trans : cxxblas::NoTrans; };
  const auto as_int = [](std::size_t size) { return static_cast<Int>(size); };
  const auto turn = turn_at_blas();
  // alpha and beta of the arrays' type and sizes of BLAS's integer: anything else compiles, too,
  // and runs a generic loop instead of BLAS.
  cxxblas::gemm<Int>(cxxblas::RowMajor, transpose(transpose_a), transpose(transpose_b), as_int(m),
                     as_int(n), as_int(k), alpha, a, as_int(lda), b, as_int(ldb), beta, c,
                     as_int(ldc));
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

std::string xgrad::simd_name() { return std::string(simd::Arch::name()); }

std::string xgrad::blas_name() {
  if (auto* const core_name = kernels::find_in_blas<char*()>("openblas_get_corename"))
    return std::string("OpenBLAS ") + core_name() +
           (kernels::has_no_locks() ? ", without locks: one product at a time" : "");
  if (kernels::find_in_blas<void(int)>("MKL_Set_Num_Threads") != nullptr)
    return "MKL";
  if (kernels::find_in_blas<void(int)>("bli_thread_set_num_threads") != nullptr)
    return "BLIS";
  return "BLAS";
}
