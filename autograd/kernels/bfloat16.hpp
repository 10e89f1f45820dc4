#pragma once
// Matrices in bfloat16, the upper half of a float32: 2 bytes an element.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace xgrad::kernels {

inline float from_bfloat16(std::uint16_t upper) {
  return std::bit_cast<float>(std::uint32_t{upper} << 16);
}
/// y = x rounded to the nearest, ties to even; NaN stays NaN.  Returns whether all that is finite
/// in x is finite in y.
bool to_bfloat16(std::size_t n, const float* x, std::uint16_t* y);

/// Rows of a matrix are stored with zeros at their end, up to a multiple of this: whole registers.
inline constexpr std::size_t bfloat16_columns = 32;

/// y (m, n) = x (m, k) wᵀ + bias: w (n, k) with `stride` between rows, which are padded; the bias
/// (n,) may be null.  Few rows of x read w as it is, once; for more it becomes float32 tile by tile
/// on its way to gemm().  On all threads, with the same bits on any number.
void linear_bfloat16(std::size_t m, std::size_t n, std::size_t k, const float* x,
                     const std::uint16_t* w, std::size_t stride, const float* bias, float* y);

}  // namespace xgrad::kernels
