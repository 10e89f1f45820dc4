#pragma once
// SIMD registers (xsimd) and the functions that formulas use on them.
//
// A formula such as `g * (c(y, 1) - y * y)` is a generic lambda.  Called with SIMD registers it
// computes a few elements; called with Tensors it builds the graph of the gradient.  So a formula
// may use only operations that both have: arithmetic, the functions below, comparisons inside
// where(), and c(x, number) for constants of x's type.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <numbers>

#if defined(__aarch64__)
#if defined(XSIMD_HPP) || defined(XSIMD_BATCH_HPP)
#error "on Arm include xgrad's headers before xsimd's, whose float quotients are estimates"
#endif
#include <arm_neon.h>
// On Arm xsimd estimates quotients and square roots of floats: 1 / 1e-40f is -inf, sqrt(inf) NaN.
// Its own overloads take neon, the base class; these take neon64 and are preferred.  xsimd looks
// them up where it is included, so they come first.
namespace xsimd {
struct neon64;
template <class T, class A>
class batch;
namespace kernel {
template <class A>
batch<float, A> div(const batch<float, A>& a, const batch<float, A>& b, const neon64&) noexcept {
  return vdivq_f32(a, b);
}
template <class A>
batch<float, A> sqrt(const batch<float, A>& x, const neon64&) noexcept {
  return vsqrtq_f32(x);
}
}  // namespace kernel
}  // namespace xsimd
#endif

// GCC 12 warns of the deliberately uninitialised registers in its own AVX-512 intrinsics.
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

template <class B>
concept Lanes = xsimd::is_batch<B>::value && std::floating_point<typename B::value_type>;

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

// Unqualified calls find xsimd's functions by argument type; these differ in name or meaning.
// (isnan, because xsimd's != says that NaN equals itself.)
template <Lanes B>
B maximum(const B& a, const B& b) {  // NaN if either is
  return xsimd::select(xsimd::isnan(a), a, xsimd::select(xsimd::isnan(b), b, xsimd::max(a, b)));
}
template <Lanes B>
B minimum(const B& a, const B& b) {
  return xsimd::select(xsimd::isnan(a), a, xsimd::select(xsimd::isnan(b), b, xsimd::min(a, b)));
}

namespace simd {

// Without -O, GCC's intrinsics are macros, and xsimd's select() for AVX-512BW does not compile.
#if defined(__AVX512BW__) && !defined(__OPTIMIZE__)
using Arch = xsimd::avx512dq;
#else
using Arch = xsimd::default_arch;
#endif
template <class T>
using Batch = xsimd::batch<T, Arch>;

template <Lanes B>
inline constexpr bool is_float = std::same_as<typename B::value_type, float>;

/// The polynomial with these coefficients, lowest power first.
template <Lanes B, std::size_t N>
B polynomial(const B& x, const std::array<double, N>& coefficients) {
  B sum = c(x, coefficients[N - 1]);
  for (std::size_t i = N - 1; i > 0; --i)
    sum = xsimd::fma(sum, x, c(x, coefficients[i - 1]));
  return sum;
}

/// x 2^k for whole k of any size; a subnormal result is rounded once.
template <Lanes B>
B scale(const B& x, const B& k) {
#ifdef __AVX512F__
  if constexpr (is_float<B>)
    return _mm512_scalef_ps(x, k);
  else
    return _mm512_scalef_pd(x, k);
#else
  const B normal = is_float<B> ? min(max(k, B(-126)), B(127)) : min(max(k, B(-1022)), B(1023));
  const B y = xsimd::ldexp(x, xsimd::to_int(normal)), rest = k - normal;
  if (xsimd::all(rest == B(0))) [[likely]]
    return y;
  return xsimd::ldexp(y, xsimd::to_int(rest));
#endif
}

// exp(x) = 2^k (1 + m), for x up to a little beyond exp's range.  xsimd's exp is infinite from
// 88.38 and 709.44 on, where 88.72 and 709.78 would be right, and 0 for subnormal results.
template <Lanes B>
struct Exponential {
  B k, m;
  explicit Exponential(const B& x) {
    // log 2 in two parts, of which the first times k is exact
    constexpr double high = is_float<B> ? 0.693359375 : 0x1.62e42feep-1;
    constexpr double low = is_float<B> ? -0.000212194440055 : 1.9082149292705878161e-10;
    k = xsimd::nearbyint(x * c(x, std::numbers::log2e));
    const B r = xsimd::fnma(k, c(x, low), xsimd::fnma(k, c(x, high), x));
    m = xsimd::fma(r * r, rest(r), r);
  }
  // (exp(r) - 1 - r) / r^2 where |r| <= log(2) / 2, fitted in Chebyshev nodes
  static B rest(const B& r) {
    if constexpr (is_float<B>)
      return polynomial(r,
                        std::array{0.5, 0.166665763, 0.0416665561, 0.00836320315, 0.00139262131});
    else
      return polynomial(
          r, std::array{0.5000000000000001, 0.16666666666666669, 0.04166666666662399,
                        0.008333333333330051, 0.0013888888917281794, 0.00019841269863105968,
                        2.480152119021773e-05, 2.7557268378684192e-06, 2.7620138719733994e-07,
                        2.5100424157005067e-08});
  }
};

/// x limited to these bounds; NaN stays.  (xsimd's versions differ in max and min of NaN.)
template <Lanes B>
B clamped(const B& x, const B& least, const B& most) {
  return xsimd::select(x < least, least, xsimd::select(x > most, most, x));
}
template <Lanes B>
B exp(const B& x) {
  const B most = is_float<B> ? B(89) : B(710), least = is_float<B> ? B(-104) : B(-746);
  const Exponential<B> e(clamped(x, least, most));
  return scale(B(1) + e.m, e.k);
}
template <Lanes B>
B expm1(const B& x) {  // in halves, because 2^1024 is no double
  const B most = is_float<B> ? B(89) : B(710), least = is_float<B> ? B(-20) : B(-40);
  const Exponential<B> e(clamped(x, least, most));
  const B half = scale(c(x, 0.5), e.k), y = xsimd::fma(half, e.m, half - c(x, 0.5));
  return xsimd::copysign(xsimd::select(e.k == B(0), e.m, y + y), x);
}
// xsimd's log1p turns -0 into 0.
template <Lanes B>
B log1p(const B& x) {
  return xsimd::select(x == B(0), x, xsimd::log1p(x));
}
// xsimd's log takes the exponent of a subnormal double before it normalises it.
template <Lanes B>
B log(const B& x) {
  B y = xsimd::log(x);
  if constexpr (!is_float<B>) {
    const auto subnormal = (x > B(0)) & (x < B(0x1p-1022));
    if (xsimd::any(subnormal)) [[unlikely]]
      y = xsimd::select(subnormal, xsimd::log(x * B(0x1p54)) - B(54 * std::numbers::ln2), y);
  }
  return y;
}

}  // namespace simd

// (No templates, so that overloading prefers them to xsimd's.)
inline simd::Batch<float> exp(const simd::Batch<float>& x) { return simd::exp(x); }
inline simd::Batch<double> exp(const simd::Batch<double>& x) { return simd::exp(x); }
inline simd::Batch<float> expm1(const simd::Batch<float>& x) { return simd::expm1(x); }
inline simd::Batch<double> expm1(const simd::Batch<double>& x) { return simd::expm1(x); }
inline simd::Batch<float> log(const simd::Batch<float>& x) { return simd::log(x); }
inline simd::Batch<double> log(const simd::Batch<double>& x) { return simd::log(x); }
inline simd::Batch<float> log1p(const simd::Batch<float>& x) { return simd::log1p(x); }
inline simd::Batch<double> log1p(const simd::Batch<double>& x) { return simd::log1p(x); }

/// sigmoid and its derivative, which cannot be computed from sigmoid's value where that is rounded
/// to 1.
template <class T>
struct Logistic {
  T value, slope;
};
/// 1 / (1 + exp(-x)), from exp(-|x|) alone, so it underflows gradually.
template <Lanes B>
B sigmoid(const B& x) {
  const B e = exp(-xsimd::abs(x));
  return xsimd::select(x < B(0), e, B(1)) / (B(1) + e);
}
template <Lanes B>
Logistic<B> logistic(const B& x) {
  const B e = exp(-xsimd::abs(x)), r = B(1) / (B(1) + e), er = e * r;
  return {xsimd::select(x < B(0), er, r), er * r};
}
template <Lanes B>
B sigmoid_slope(const B& x) {
  return logistic(x).slope;
}

}  // namespace xgrad

namespace xsimd {  // xsimd's own are estimates of 12 bits, of doubles as well
inline xgrad::simd::Batch<float> reciprocal(const xgrad::simd::Batch<float>& x) { return 1.F / x; }
inline xgrad::simd::Batch<double> reciprocal(const xgrad::simd::Batch<double>& x) { return 1. / x; }
inline xgrad::simd::Batch<float> rsqrt(const xgrad::simd::Batch<float>& x) { return 1.F / sqrt(x); }
inline xgrad::simd::Batch<double> rsqrt(const xgrad::simd::Batch<double>& x) {
  return 1. / sqrt(x);
}
}  // namespace xsimd

namespace xgrad::kernels {

// ---- parts of a register: the end of an array that does not fill one, and lane by lane ----

/// p[0 ... n) for n below a register's width, and `rest` in the other lanes.
template <class T>
simd::Batch<T> load_first(const T* p, std::size_t n, T rest = 0) {
  constexpr std::size_t width = simd::Batch<T>::size;
  alignas(64) T padded[width];
  std::fill_n(padded, width, rest);
  std::copy_n(p, n, padded);
  return simd::Batch<T>::load_aligned(padded);
}
/// Stores the first n lanes to p[0 ... n).
template <class T>
void store_first(const simd::Batch<T>& v, T* p, std::size_t n) {
  alignas(64) T padded[simd::Batch<T>::size];
  v.store_aligned(padded);
  std::copy_n(padded, n, p);
}

/// f(x, y, ...) of single elements, lane by lane: for functions that xsimd lacks.
template <class F, Lanes B, std::same_as<B>... Others>
B by_lane(const F& f, const B& x, const Others&... others) {
  using Values = std::array<typename B::value_type, B::size>;
  const auto stored = [](const B& b) {
    alignas(64) Values v;
    b.store_aligned(v.data());
    return v;
  };
  alignas(64) Values result = stored(x);
  [&](const auto&... values) {
    for (std::size_t i = 0; i < B::size; ++i)
      result[i] = f(result[i], values[i]...);
  }(stored(others)...);
  return B::load_aligned(result.data());
}

// Each level is a separate array: the compiler keeps those in registers, but would turn a loop over
// one array into scalar code.
template <class T, std::size_t N, class F>
T combine(const std::array<T, N>& a, const F& f) {
  if constexpr (N == 1) {
    return a[0];
  } else {
    std::array<T, N / 2> b;
    for (std::size_t i = 0; i < N / 2; ++i)
      b[i] = f(a[i], a[i + N / 2]);
    return combine(b, f);
  }
}
/// The lanes of v combined by f in a tree of halves.
template <class T, class F>
T combine_lanes(const simd::Batch<T>& v, const F& f) {
  alignas(64) std::array<T, simd::Batch<T>::size> lanes;
  v.store_aligned(lanes.data());
  return combine(lanes, f);
}
template <class T>
T add_lanes(const simd::Batch<T>& v) {
  return combine_lanes<T>(v, [](T a, T b) { return a + b; });
}

}  // namespace xgrad::kernels
