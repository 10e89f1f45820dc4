#pragma once
// Products of float32 on AMX, the matrix unit of Intel's processors from Sapphire Rapids on.

#include <cstddef>
#include <xgrad/autograd/kernels/gemm_tile.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>

namespace xgrad::kernels {

/// The most columns of b and terms of each sum that multiply_amx() takes.
inline constexpr std::size_t amx_columns = 512, amx_depth = 128;

/// Whether the processor has AMX, and the system lets this process use it: Linux 5.16 and newer, if
/// no thread has a signal stack (sigaltstack) too small for AMX's registers.  Asked once.
bool has_amx();

/// c (m, n) = op(a) op(b) * alpha + added * beta.  A float32 is the sum of three bfloat16, x = x0 +
/// x1 + x2, each about 2^-8 of the one before, and x y = x0 y0 + x0 y1 + x1 y0 + x0 y2 + x1 y1 + x2
/// y0 to 2^-24; these products are exact, and summed in float32 (Henry, Tang, Heinecke, "Leveraging
/// the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations", 2019).  A sum
/// is as close as a plain one in float32, of one term to 2^-23; what is below 2^-126 becomes 0.
///
/// Elements whose row of a or column of b has infinity, NaN, or numbers so small or large that a
/// part would be lost are computed by otherwise(first row, rows, first column, columns), which is
/// called for a block around them.  So an element's bits depend on its row and its column alone.
void multiply_amx(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n,
                  const Tile<float>& s, std::size_t lda, std::size_t ldb,
                  FunctionRef<std::size_t, std::size_t, std::size_t, std::size_t> otherwise);

}  // namespace xgrad::kernels
