#pragma once
// Dual numbers: forward-mode derivatives of plain code.

#include <cmath>
#include <numbers>

namespace xgrad::testing {

// A number and its derivative in one direction.  Dual<Dual<double>> has two directions and the
// mixed second derivative.
template <class T>
struct Dual {
  T value = 0, slope = 0;
  Dual() = default;
  Dual(double v) : value(v) {}
  Dual(T v, T s) : value(v), slope(s) {}
};
template <class T>
Dual<T> operator-(const Dual<T>& a) {
  return {-a.value, -a.slope};
}
template <class T>
Dual<T> operator+(const Dual<T>& a, const Dual<T>& b) {
  return {a.value + b.value, a.slope + b.slope};
}
template <class T>
Dual<T> operator-(const Dual<T>& a, const Dual<T>& b) {
  return {a.value - b.value, a.slope - b.slope};
}
template <class T>
Dual<T> operator*(const Dual<T>& a, const Dual<T>& b) {
  return {a.value * b.value, a.value * b.slope + a.slope * b.value};
}
template <class T>
Dual<T> operator/(const Dual<T>& a, const Dual<T>& b) {
  const T q = a.value / b.value;
  return {q, (a.slope - q * b.slope) / b.value};
}
using std::cos;
using std::erf;
using std::exp;
using std::log;
using std::sin;
using std::sqrt;
using std::tanh;
template <class T>
Dual<T> exp(const Dual<T>& a) {
  const T e = exp(a.value);
  return {e, e * a.slope};
}
template <class T>
Dual<T> log(const Dual<T>& a) {
  return {log(a.value), a.slope / a.value};
}
template <class T>
Dual<T> sqrt(const Dual<T>& a) {
  const T root = sqrt(a.value);
  return {root, a.slope / (T(2.0) * root)};
}
template <class T>
Dual<T> sin(const Dual<T>& a) {
  return {sin(a.value), cos(a.value) * a.slope};
}
template <class T>
Dual<T> cos(const Dual<T>& a) {
  return {cos(a.value), -sin(a.value) * a.slope};
}
template <class T>
Dual<T> tanh(const Dual<T>& a) {
  const T t = tanh(a.value);
  return {t, (T(1.0) - t * t) * a.slope};
}
template <class T>
Dual<T> erf(const Dual<T>& a) {
  return {erf(a.value), T(2 / std::sqrt(std::numbers::pi)) * exp(-(a.value * a.value)) * a.slope};
}

inline double primal(double x) { return x; }
template <class T>
double primal(const Dual<T>& x) {
  return primal(x.value);
}
inline double with_slope_scaled(double x, double) { return x; }
template <class T>
Dual<T> with_slope_scaled(const Dual<T>& x, double c) {
  return {with_slope_scaled(x.value, c), T(c) * x.slope};
}

}  // namespace xgrad::testing
