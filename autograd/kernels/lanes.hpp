#pragma once
// Parts of a SIMD register: the end of an array that does not fill one, and lane by lane.

#include <algorithm>
#include <array>
#include <cstddef>
#include <xgrad/autograd/kernels/simd.hpp>

namespace xgrad::kernels {

/// p[0 ... n), fewer than a register holds, and `rest` in the other lanes.
template <class T>
simd::Batch<T> load_first(const T* p, std::size_t n, T rest = 0) {
  constexpr std::size_t width = simd::Batch<T>::size;
  alignas(64) T padded[width];
  std::fill_n(padded, width, rest);
  std::copy_n(p, n, padded);
  return simd::Batch<T>::load_aligned(padded);
}
/// The first n lanes to p[0 ... n).
template <class T>
void store_first(const simd::Batch<T>& v, T* p, std::size_t n) {
  alignas(64) T padded[simd::Batch<T>::size];
  v.store_aligned(padded);
  std::copy_n(padded, n, p);
}

/// f(x, y, ...) of single elements, lane by lane: for functions that xsimd has not.
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

// Each level is an array of its own: the compiler keeps these in registers, where it turns a loop
// over one array into scalar code.
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
