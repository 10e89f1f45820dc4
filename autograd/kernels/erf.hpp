#pragma once
// The error function, its inverse, and the normal distribution.

#include <cmath>
#include <numbers>
#include "simd.hpp"

namespace xgrad {

/// The normal distribution's tail over its density, both without exp(-x^2 / 2): exp(x^2 / 2) (1 -
/// Phi(x)) for x >= 0.  It is P(u) / (x + a) with u = (x - a) / (x + a); P was fitted in Chebyshev
/// nodes, to 3e-8 and 1e-16.
template <Lanes B>
B scaled_tail(const B& x) {
  constexpr double a = simd::is_float<B> ? 4 : 5;
  const B r = B(1) / (x + B(a)), u = xsimd::fma(B(-2 * a), r, B(1));
  if constexpr (simd::is_float<B>)
    return r * simd::polynomial(u, std::array{0.755285144, -0.607896626, 0.387136668, -0.186523005,
                                              0.0604064688, -0.00752721308, -0.00352357398,
                                              0.0015693137, 0.000194801847, -0.000122983154});
  else
    return r *
           simd::polynomial(
               u, std::array{0.769193049750063,      -0.6653825028900567,    0.4953056159699764,
                             -0.31353315667130455,   0.1650203661703847,     -0.06911863870631016,
                             0.020795066799883178,   -0.0029933767705085422, -0.0007978693984660701,
                             0.0005448990647731298,  -5.937572800991586e-05, -4.97628142705858e-05,
                             1.6681213742042063e-05, 3.9809021578680414e-06, -2.76926709599743e-06,
                             -3.366153681012471e-07, 4.331410356862585e-07,  4.2274993740065346e-08,
                             -6.594221662477223e-08, -9.31356099432606e-09,  7.66307180076004e-09,
                             1.753048401408232e-09,  -1.5877468827473365e-10});
}

/// The normal distribution's density and its cumulative function, Phi.
template <class T>
struct Normal {
  T density, cdf;
};

// Phi of float32 between -3 and 5.5 is 1/2 + x P(x^2) / Q(x^2), with fitted polynomials, to 2e-7;
// it takes a third of the time.  Below -3 it would be mere rounding error, of either sign, as 1 +
// erf(x) is.
template <Lanes B>
B central_cdf(const B& x) {
  const B z = x * x;
  const B p = simd::polynomial(z, std::array{0.398942271, 0.0342141998, 0.00469356715,
                                             0.000171619826, 6.28800454e-6, 2.19507296e-8});
  const B q = simd::polynomial(
      z, std::array{1., 0.252428559, 0.0288374549, 0.00190089933, 7.40974141e-5, 1.16936544e-6});
  return xsimd::select(x > B(5.5), B(1), xsimd::fma(x, p / q, B(0.5)));
}

// Phi.  A function computes exp(-x^2 / 2), because it is not always needed.
template <Lanes B, class F>
B cdf(const B& x, const F& exponential) {
  if constexpr (simd::is_float<B>) {
    const B y = central_cdf(x);
    const auto low = x < B(-3);
    if (!xsimd::any(low)) [[likely]]
      return y;
    return xsimd::select(low, exponential() * scaled_tail(xsimd::abs(x)), y);
  } else {
    const B tail = exponential() * scaled_tail(xsimd::abs(x));
    return xsimd::select(x < B(0), tail, B(1) - tail);
  }
}
template <Lanes B>
B normal_cdf(const B& x) {
  return cdf(x, [&] { return exp(B(-0.5) * x * x); });
}
template <Lanes B>
Normal<B> normal(const B& x) {
  const B e = exp(B(-0.5) * x * x);
  return {e * c(x, std::numbers::inv_sqrtpi / std::numbers::sqrt2), cdf(x, [&] { return e; })};
}

/// The error function.  xsimd's for float32 squares its argument, so the argument is limited to 10,
/// where erf is 1 to the last digit.  xsimd's for float64 is off by up to 1.5e-14.
template <Lanes B>
B error_function(const B& x) {
  const B within = minimum(maximum(x, B(-10)), B(10));
  if constexpr (simd::is_float<B>) {
    return xsimd::erf(within);
  } else {  // near 0 erf(x) / x is a polynomial in x^2, fitted in Chebyshev nodes
    const B square = within * within, size = xsimd::abs(within);
    const auto central = size < B(1);
    const B y = x * simd::polynomial(xsimd::select(central, square, B(0)),
                                     std::array{1.1283791670955126, -0.37612638903183543,
                                                0.11283791670945006, -0.02686617064323777,
                                                0.0052239776071164225, -0.0008548325975389692,
                                                0.00012055294904839707, -1.492473690741966e-05,
                                                1.6447424703317362e-06, -1.6208483801871705e-07,
                                                1.3720064546777686e-08, -7.795898827002142e-10});
    if (xsimd::all(central))
      return y;
    const B tail = exp(-square) * scaled_tail(B(std::numbers::sqrt2) * size);
    return xsimd::select(central, y, xsimd::copysign(B(1) - (tail + tail), x));
  }
}

}  // namespace xgrad
