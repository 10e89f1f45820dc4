#pragma once
// SIMD registers (xsimd) and the vocabulary of formulas on them: the first of a formula's two
// readings.
//
// A formula such as `g * (c(y, 1) - y * y)` is a generic lambda.  Given SIMD registers it computes
// a handful of elements; given Tensors the same line builds the graph of the gradient.  What a
// formula may use is therefore what both have: arithmetic, the functions below, comparisons inside
// where(), and c(x, number) for constants of x's type.

#include <concepts>
#include <type_traits>

// GCC 12 takes the deliberately uninitialised registers in its own AVX-512 intrinsics for mistakes.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <xsimd/xsimd.hpp>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace xgrad {

namespace simd {
// Without -O, GCC's intrinsics are macros, and xsimd's select() for AVX-512BW does not compile.
#if defined(__AVX512BW__) && !defined(__OPTIMIZE__)
using Arch = xsimd::avx512dq;
#else
using Arch = xsimd::default_arch;
#endif
template <class T>
using Batch = xsimd::batch<T, Arch>;
}  // namespace simd

template <class B>
concept Lanes = std::same_as<B, simd::Batch<float>> || std::same_as<B, simd::Batch<double>>;

/// The constant v in the type of x.
template <Lanes B>
B c(const B&, double v) {
  return B(static_cast<typename B::value_type>(v));
}

/// Elementwise condition ? a : b.
template <Lanes B>
B where(const typename B::batch_bool_type& condition, const B& a, const B& b) {
  return xsimd::select(condition, a, b);
}

// Unqualified calls find xsimd's functions by the type of their argument; these differ in name or
// meaning.  (isnan, because xsimd's != says that NaN does not differ from itself.)
template <Lanes B>
B maximum(const B& a, const B& b) {  // NaN if either is
  return xsimd::select(xsimd::isnan(a), a, xsimd::select(xsimd::isnan(b), b, xsimd::max(a, b)));
}
template <Lanes B>
B minimum(const B& a, const B& b) {
  return xsimd::select(xsimd::isnan(a), a, xsimd::select(xsimd::isnan(b), b, xsimd::min(a, b)));
}
// xsimd squares the argument, which overflows; beyond 10, erf is 1 to the last digit.
template <Lanes B>
B error_function(const B& x) {
  return xsimd::erf(minimum(maximum(x, B(-10)), B(10)));
}
template <Lanes B>
B sigmoid(const B& x) {
  return B(1) / (B(1) + xsimd::exp(-x));
}

}  // namespace xgrad
