#pragma once
// Operators on Tensors and numbers, and the ops that return a std::array.  Part of the catalogue:
// include ops.hpp.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>
#include "../ops.hpp"

namespace xgrad {

// `a += b` rebinds the handle a to a new Tensor; other handles keep the old one.

namespace detail {
/// A number as an operand, in x's dtype; if x is undefined, the op reports that.
inline Tensor number(double value, const Tensor& x) {
  return scalar(value, x.defined() ? x.dtype() : DType::float32);
}

/// ValueError naming op unless the number of parts is the one wanted.
void check_parts(const char* op, const Tensor& x, Dim dim, std::size_t parts, std::size_t wanted);

template <std::size_t N>
std::array<Tensor, N> named_parts(const char* op, const Tensor& x, Dim dim,
                                  std::vector<Tensor> parts) {
  check_parts(op, x, dim, parts.size(), N);
  std::array<Tensor, N> named;
  std::move(parts.begin(), parts.end(), named.begin());
  return named;
}
}  // namespace detail

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor add(const Tensor& a, double b) { return add(a, detail::number(b, a)); }
inline Tensor sub(const Tensor& a, double b) { return sub(a, detail::number(b, a)); }
inline Tensor mul(const Tensor& a, double b) { return mul(a, detail::number(b, a)); }
inline Tensor div(const Tensor& a, double b) { return div(a, detail::number(b, a)); }
inline Tensor maximum(const Tensor& a, double b) { return maximum(a, detail::number(b, a)); }
inline Tensor minimum(const Tensor& a, double b) { return minimum(a, detail::number(b, a)); }
inline Tensor lerp(const Tensor& x, const Tensor& end, double weight) {
  return lerp(x, end, detail::number(weight, x));
}
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, double b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, double b) { return div(a, b); }
inline Tensor operator+(double a, const Tensor& b) { return add(detail::number(a, b), b); }
inline Tensor operator-(double a, const Tensor& b) { return sub(detail::number(a, b), b); }
inline Tensor operator*(double a, const Tensor& b) { return mul(detail::number(a, b), b); }
inline Tensor operator/(double a, const Tensor& b) { return div(detail::number(a, b), b); }
template <class A>
concept Assignable = std::same_as<A, Tensor> || std::same_as<A, Indices>;
template <Assignable A, class B>
A& operator+=(A& a, const B& b) {
  return a = a + b;
}
template <Assignable A, class B>
A& operator-=(A& a, const B& b) {
  return a = a - b;
}
template <Assignable A, class B>
A& operator*=(A& a, const B& b) {
  return a = a * b;
}
template <Assignable A, class B>
A& operator/=(A& a, const B& b) {
  return a = a / b;
}
template <class B>
Indices& operator%=(Indices& a, const B& b) {
  return a = a % b;
}

// ---- parts by name ----

template <std::size_t N>
std::array<Tensor, N> split(const Tensor& x, Size split_size, Dim dim) {
  return detail::named_parts<N>("split", x, dim, split(x, split_size, dim));
}
template <std::size_t N>
std::array<Tensor, N> split(const Tensor& x, const Dims& split_sizes, Dim dim) {
  return detail::named_parts<N>("split", x, dim, split(x, split_sizes, dim));
}
template <std::size_t N>
std::array<Tensor, N> chunk(const Tensor& x, Dim dim) {
  return detail::named_parts<N>("chunk", x, dim, chunk(x, N, dim));
}
template <std::size_t N>
std::array<Tensor, N> Tensor::split(Size split_size, Dim dim) const {
  return xgrad::split<N>(*this, split_size, dim);
}
template <std::size_t N>
std::array<Tensor, N> Tensor::split(const Dims& split_sizes, Dim dim) const {
  return xgrad::split<N>(*this, split_sizes, dim);
}
template <std::size_t N>
std::array<Tensor, N> Tensor::chunk(Dim dim) const {
  return xgrad::chunk<N>(*this, dim);
}

}  // namespace xgrad
