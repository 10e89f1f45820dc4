#pragma once
// The formula of an elementwise update: a generic lambda on SIMD registers of either dtype.

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include "kernels/simd.hpp"
#include "update.hpp"

namespace xgrad {
namespace detail {

template <Lanes B>
std::array<B, 1> as_array(const B& x) {
  return {x};
}
template <Lanes B, std::size_t N>
const std::array<B, N>& as_array(const std::array<B, N>& x) {
  return x;
}

// The last elements go through padded registers, so every element sees the same instructions.  The
// formula is a copy, which stores cannot change, so its constants stay in registers.
template <class T, class F, std::size_t... K>
void update_range(F formula, void* const* data, std::size_t begin, std::size_t end,
                  std::index_sequence<K...>) {
  using B = simd::Batch<T>;
  const std::array<T*, sizeof...(K)> at{static_cast<T*>(data[K])...};
  const auto apply = [&](std::size_t i, const auto& load, const auto& store) {
    const auto results = as_array(formula(B(load(at[K] + i))...));
    for (std::size_t k = 0; k < results.size(); ++k)
      store(results[k], at[k] + i);
  };
  std::size_t i = begin;
  for (; i + B::size <= end; i += B::size)
    apply(
        i, [](const T* from) { return B::load_unaligned(from); },
        [](const B& x, T* to) { x.store_unaligned(to); });
  if (i < end)
    apply(
        i, [n = end - i](const T* from) { return kernels::load_first(from, n); },
        [n = end - i](const B& x, T* to) { kernels::store_first(x, to, n); });
}

template <class T, class>
using second_of = T;

}  // namespace detail

/// The update x, y, ... = formula(x, y, ...), element by element.  The formula takes a register of
/// each Tensor and returns the new elements of the first, or a std::array for the first ones.  It
/// may use + - * /, the functions of kernels/simd.hpp, and c(x, number) for a constant of x's type.
template <class F, std::same_as<Tensor>... X>
ElementUpdate element_update(const F& formula, const X&... tensors) {
  using Result = decltype(detail::as_array(formula(detail::second_of<simd::Batch<float>, X>()...)));
  constexpr std::size_t written = std::tuple_size_v<std::remove_cvref_t<Result>>;
  static_assert(written <= sizeof...(X),
                "a formula returns at most as many results as it has arguments");
  return {{tensors...}, written, [formula](DType dtype, void* const* data, auto begin, auto end) {
            dispatch(dtype, [&]<class T>() {
              detail::update_range<T>(formula, data, begin, end, std::index_sequence_for<X...>());
            });
          }};
}

}  // namespace xgrad
