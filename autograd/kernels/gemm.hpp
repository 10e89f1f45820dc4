#pragma once
// Matrix products: BLAS's, and those with matrices in bfloat16.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

/// c = op(a) op(b) * alpha + c * beta; row-major; op(a) is (m, k), op(b) (k, n), c (m, n).  lda,
/// ldb and ldc are the distances between stored rows, so transposes and slices need no copies.
/// With beta 0, c may be uninitialised.  With a bias (n,), c = op(a) op(b) * alpha + bias in each
/// row, for any beta.  Any size may be 0.  ShapeError for a size beyond BLAS's integers.  Runs on
/// the calling thread.
template <class T>
void gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, T alpha,
          const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc,
          const T* bias = nullptr);

/// The same for a and b in bfloat16, with sums in float32: oneDNN's if alpha is 1 and the processor
/// multiplies bfloat16, else BLAS's of converted tiles.  Operands below 1e-38 and results below
/// 1e-37 may count as 0.
void gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
          float alpha, const std::uint16_t* a, std::size_t lda, const std::uint16_t* b,
          std::size_t ldb, float beta, float* c, std::size_t ldc, const float* bias = nullptr);

/// The same, on all threads, by blocks of c's rows or columns that depend on the sizes alone.  E is
/// T, or std::uint16_t for bfloat16.
template <class T, class E>
void gemm_parallel(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                   T alpha, const E* a, std::size_t lda, const E* b, std::size_t ldb, T beta, T* c,
                   std::size_t ldc, const T* bias = nullptr);

/// Before 0.3.25 OpenBLAS takes Raptor Lake and Emerald Rapids for a Pentium 4: this gives it its
/// kernels for AVX2 or AVX-512, unless OPENBLAS_CORETYPE is set or other threads exist.
void mend_core_type();

// ---- matrices in bfloat16, the upper half of a float32: 2 bytes an element ----

inline float from_bfloat16(std::uint16_t upper) {
  return std::bit_cast<float>(std::uint32_t{upper} << 16);
}
/// y = x rounded to the nearest, ties to even; NaN stays NaN.  Returns whether all finite elements
/// stay finite.
bool to_bfloat16(std::size_t n, const float* x, std::uint16_t* y);
/// The same on all threads.  Finite elements above bfloat16's largest become infinite.
void round_to_bfloat16(std::size_t n, const float* x, std::uint16_t* y);
/// y = x * scale, rounded likewise and in float32; y may be x.
void rounded_to_bfloat16(std::size_t n, float scale, const float* x, float* y);

/// Rows of a matrix are padded with zeros to a multiple of this: whole registers.
inline constexpr std::size_t bfloat16_columns = 32;

/// y (m, n) = x (m, k) wᵀ + bias: w (n, k) with `stride` between its padded rows; the bias (n,) may
/// be null.  Few rows of x read w as it is, once; for more, gemm() gets w converted to float32 tile
/// by tile.  On all threads, with the same bits on any number.
void linear_bfloat16(std::size_t m, std::size_t n, std::size_t k, const float* x,
                     const std::uint16_t* w, std::size_t stride, const float* bias, float* y);

}  // namespace xgrad::kernels
