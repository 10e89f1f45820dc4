#include "gemm.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <thread>
#include "../fail.hpp"
#include "../threads.hpp"
#include "parallel.hpp"
#include "simd.hpp"

#ifdef XGRAD_NO_BLAS  // products of packed panels
#include "odometer.hpp"
#include "panels.hpp"
#else
#include <xtensor-blas/xblas_config.hpp>
// (a separate block, so that the formatter does not sort it)
#include <xflens/cxxblas/cxxblas.cxx>
#endif

extern "C" {  // of an OpenBLAS linked from its archive, where dlsym() finds nothing; else null
[[gnu::weak]] int blas_thread_shutdown_();
[[gnu::weak]] char* gotoblas_corename();
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
[[gnu::weak]] void gotoblas_init();
[[gnu::weak]] int openblas_get_num_threads();
[[gnu::weak]] void openblas_set_num_threads(int);
}
#if defined(__linux__)
#define XGRAD_IN_BLAS(function) kernels::find_in_blas(#function, function)
#else
#define XGRAD_IN_BLAS(function) kernels::find_in_blas<decltype(function)>(#function)
#endif

namespace xgrad::kernels {

namespace {

// A function of the loaded BLAS; if it has none of that name, the other.
template <class F>
F* find_in_blas(const char* name, F* other = nullptr) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  return found == nullptr ? other : reinterpret_cast<F*>(found);
}

// Whether this process has at most n threads; waits, as a joined one is counted for a moment.
[[maybe_unused]] bool has_threads(int n) {
  std::error_code error;
  for (int i = 0; i < 50; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (std::distance(std::filesystem::directory_iterator("/proc/self/task", error), {}) <= n)
      return true;
  return false;
}

// Keeps the loaded BLAS from using its own threads, which would compete with ours, and mends its
// kernels.  Runs when the program starts: after a fork, OpenBLAS would start threads again, and end
// the process if it cannot.
[[maybe_unused]] const bool prepared = [] {
  if (auto* const init = XGRAD_IN_BLAS(gotoblas_init))
    init();  // one from an archive has not started yet
  auto* const get_num_threads = XGRAD_IN_BLAS(openblas_get_num_threads);
  const int num_threads = get_num_threads != nullptr ? get_num_threads() : 1;
  for (auto* const set_num_threads :
       {XGRAD_IN_BLAS(openblas_set_num_threads), find_in_blas<void(int)>("MKL_Set_Num_Threads"),
        find_in_blas<void(int)>("bli_thread_set_num_threads")})
    if (set_num_threads != nullptr)
      set_num_threads(1);
  // OpenBLAS started threads when it was loaded.  Another thread may be waiting for them.
  if (auto* const shut_down = XGRAD_IN_BLAS(blas_thread_shutdown_);
      shut_down != nullptr && has_threads(num_threads))
    shut_down();
  mend_core_type();
  return true;
}();

// Whether this is an OpenBLAS built for one thread (libopenblas-serial).  It hands out buffers
// without a lock, so two concurrent products may get the same buffer and be wrong.
bool has_no_locks() {
  if (auto* const config = find_in_blas<char*()>("openblas_get_config"))
    return std::string_view(config()).find("SINGLE_THREADED") != std::string_view::npos;
  return XGRAD_IN_BLAS(gotoblas_init) != nullptr && XGRAD_IN_BLAS(blas_thread_shutdown_) == nullptr;
}

// How c is cut: into blocks of rows if it is taller than wide, else of columns.
struct Cut {
  bool by_rows;
  std::size_t block, pieces;
};

// For each block, BLAS packs the whole operand that is not cut.  Blocks end where BLAS's own do.
Cut cut(std::size_t m, std::size_t n, std::size_t k) {
  constexpr std::size_t least_work = 262'144, good_size = 192, most_pieces = 16, edge = 64;
  const bool by_rows = m >= n;
  const std::size_t size = by_rows ? m : n;
  // One row takes as long as reading the other operand: halves of it stay in two cores' caches.
  const std::size_t worth =
      std::max<std::size_t>(m * n * k / (m == 1 ? least_work / 16 : least_work), 1);
  const std::size_t pieces =
      std::min(worth, std::clamp<std::size_t>(size / good_size, 2, most_pieces));
  const std::size_t block = ((size + pieces - 1) / pieces + edge - 1) / edge * edge;
  return {by_rows, block, (size + block - 1) / block};
}

// Locked if the loaded BLAS serves only one thread at a time.
[[maybe_unused]] std::unique_lock<std::mutex> turn_at_blas() {
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
#ifndef XGRAD_NO_BLAS
  if (k == 0)  // BLAS may refuse these sizes
#endif
    for (std::size_t i = 0; beta != T(1) && i < m; ++i)
      for (T* x = c + i * ldc; x != c + i * ldc + n; ++x)
        *x = beta == T(0) ? T(0) : beta * *x;
  if (k == 0)
    return;
  for (const std::size_t size : {m, n, k, lda, ldb, ldc})
    check<ShapeError>(std::in_range<int>(size),
                      "matrix product: size {} is larger than BLAS's integers ({})", size, INT_MAX);
#ifdef XGRAD_NO_BLAS
  const auto matrix = [](const T* x, std::size_t ld, bool transpose) {
    return Strided<T>{x, transpose ? 1 : ld, transpose ? ld : 1};
  };
  Scratch<T> packed(Panels<T>::size(k, n));
  multiply(m, alpha, matrix(a, lda, transpose_a),
           pack(k, n, matrix(b, ldb, transpose_b), packed.data()), true, c, ldc);
#else
  using Int = xt::blas_index_t;
  const auto transpose = [](bool yes) { return yes ? cxxblas::Trans : cxxblas::NoTrans; };
  const auto as_int = [](std::size_t size) { return static_cast<Int>(size); };
  const auto turn = turn_at_blas();
  // alpha and beta of the arrays' type and sizes of BLAS's integer type: others compile, too, but
  // call a generic loop instead of BLAS.
  if (m > 1)
    return cxxblas::gemm<Int>(cxxblas::RowMajor, transpose(transpose_a), transpose(transpose_b),
                              as_int(m), as_int(n), as_int(k), alpha, a, as_int(lda), b,
                              as_int(ldb), beta, c, as_int(ldc));
  // gemm packs b first, which for one row takes longer than the product.
  if (beta == T(0))
    std::fill_n(c, n, T(0));  // some versions of gemv keep its NaN
  cxxblas::gemv<Int>(cxxblas::RowMajor, transpose(!transpose_b), as_int(transpose_b ? n : k),
                     as_int(transpose_b ? k : n), alpha, b, as_int(ldb), a,
                     as_int(transpose_a ? lda : 1), beta == T(0) ? T(1) : beta, c, Int(1));
#endif
}

template <class T, class E>
void gemm_parallel(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                   T alpha, const E* a, std::size_t lda, const E* b, std::size_t ldb, T beta, T* c,
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

#define XGRAD_INSTANTIATE(gemm, T, E)                                                             \
  template void gemm(bool, bool, std::size_t, std::size_t, std::size_t, T, const E*, std::size_t, \
                     const E*, std::size_t, T, T*, std::size_t, const T*);
XGRAD_INSTANTIATE(gemm, float, float)
XGRAD_INSTANTIATE(gemm, double, double)
XGRAD_INSTANTIATE(gemm_parallel, float, float)
XGRAD_INSTANTIATE(gemm_parallel, float, std::uint16_t)
XGRAD_INSTANTIATE(gemm_parallel, double, double)
#undef XGRAD_INSTANTIATE

}  // namespace xgrad::kernels

void xgrad::kernels::mend_core_type() {
#if defined(__x86_64__)
  auto* const quit = XGRAD_IN_BLAS(gotoblas_dynamic_quit);
  auto* const init = XGRAD_IN_BLAS(gotoblas_dynamic_init);
  constexpr const char* type = "OPENBLAS_CORETYPE";
  if (quit == nullptr || init == nullptr || !blas_name().starts_with("OpenBLAS Prescott") ||
      std::getenv(type) != nullptr || !__builtin_cpu_supports("avx2") ||
      !__builtin_cpu_supports("fma") || !has_threads(1))
    return;
  setenv(type, __builtin_cpu_supports("avx512vl") ? "SkylakeX" : "Haswell", 1);
  quit();
  init();
  unsetenv(type);
#endif
}

std::string xgrad::simd_name() { return std::string(simd::Arch::name()); }

std::string xgrad::blas_name() {
  if (auto* const core_name =
          kernels::find_in_blas("openblas_get_corename", XGRAD_IN_BLAS(gotoblas_corename)))
    return std::string("OpenBLAS ") + core_name() +
           (kernels::has_no_locks() ? ", without locks: one product at a time" : "");
  if (kernels::find_in_blas<void(int)>("MKL_Set_Num_Threads") != nullptr)
    return "MKL";
  if (kernels::find_in_blas<void(int)>("bli_thread_set_num_threads") != nullptr)
    return "BLIS";
  return "BLAS";
}
