#pragma once
// The inverse of the error function.

#include <cmath>
#include <limits>
#include <numbers>

namespace xgrad::kernels {

/// x with erf(x) = y: infinite at -1 and 1, NaN beyond.  A rational function comes near (Pavlis,
/// 1996), two of Newton's steps come to the last digit.  The order of the operations is that of
/// torch.erfinv: near -1 and 1 a step divides by a small slope, and an error of erf grows with it.
template <class T>
T erfinv(T y) {
  const T size = std::abs(y);
  if (!(size < 1))
    return size == 1 ? std::copysign(std::numeric_limits<T>::infinity(), y)
                     : std::numeric_limits<T>::quiet_NaN();
  // highest power first
  const auto polynomial = [](T z, auto first, auto... rest) {
    T sum = static_cast<T>(first);
    ((sum = std::fma(sum, z, static_cast<T>(rest))), ...);
    return sum;
  };
  T x;
  if (size <= static_cast<T>(0.7)) {
    const T z = y * y;
    x = y * polynomial(z, -0.140543331, 0.914624893, -1.645349621, 0.886226899) /
        polynomial(z, 0.012229801, -0.329097515, 1.442710462, -2.118377725, 1);
  } else {
    const T z = std::sqrt(-std::log((1 - size) / 2));
    const T top = polynomial(z, 1.641345311, 3.429567803, -1.624906493, -1.970840454);
    x = std::copysign(top, y) / polynomial(z, 1.637067800, 3.543889200, 1);
  }
  const T slope = T(2) / static_cast<T>(std::sqrt(std::numbers::pi));  // of erf at 0
  for (int step = 0; step < 2; ++step)
    x -= (std::erf(x) - y) / (slope * std::exp(-x * x));
  return x;
}

}  // namespace xgrad::kernels
