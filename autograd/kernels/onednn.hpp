#pragma once
// Products of matrices in bfloat16 by oneDNN.

#include <cstddef>
#include <cstdint>
#include <string>

namespace xgrad::kernels::onednn {

/// "oneDNN 2.6.3"; empty if the build has no oneDNN, or if the processor has no instructions for
/// bfloat16 or ONEDNN_MAX_CPU_ISA forbids them.
const std::string& name();

/// As gemm() of kernels/gemm.hpp, for sizes above 0, on the calling thread alone.  False, with c as
/// it was, if oneDNN cannot.
bool gemm(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
          float alpha, const std::uint16_t* a, std::size_t lda, const std::uint16_t* b,
          std::size_t ldb, float beta, float* c, std::size_t ldc);

}  // namespace xgrad::kernels::onednn
