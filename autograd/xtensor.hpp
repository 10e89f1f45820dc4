#pragma once
// The bridge to xtensor: converts xtensor expressions to Tensors, Indices and Masks, and their
// values to expressions.  The only header that includes xtensor; it hides the differences between
// xtensor's versions.

#if defined(__aarch64__) && defined(XTENSOR_USE_XSIMD)
#include "kernels/simd.hpp"  // before xtensor's xsimd
#endif
#if __has_include(<xtensor/containers/xadapt.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xfixed.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xtensor_config.hpp>
// Their order matters: each needs the declarations of the one before it.
#include <xtensor/xshape.hpp>
// (a separate block, so that the formatter does not sort it)
#include <xtensor/xtensor_forward.hpp>
// (as above)
#include <xtensor/xexpression_traits.hpp>

#if XTENSOR_VERSION_MAJOR == 0 && XTENSOR_VERSION_MINOR < 26
// xtensor 0.24 and 0.25 take a dynamic shape for a fixed one under GCC's -std=c++20, so that
// evaluating an expression of two 2-D arrays gives a 4-D one.  A full specialisation outranks the
// wrong partial one.
template <>
struct xt::detail::xtype_for_shape<xt::dynamic_shape<std::size_t>> {
  template <class T, xt::layout_type L>
  using type = xt::xarray<T, L>;
};
#endif

#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include "tensor.hpp"

namespace xgrad {

/// A row-major xtensor array.  It names the allocator, because xtensor's default depends on
/// compiler flags: a program that is built with other flags must agree with the library on the
/// type.
template <class T>
using XArray = xt::xarray<T, xt::layout_type::row_major, Allocator<T>>;

namespace detail {

// Containers that own their elements: moving one avoids a copy.
template <class E>
inline constexpr bool is_container = false;
template <class S, xt::layout_type L, class Sizes, class Tag>
inline constexpr bool is_container<xt::xarray_container<S, L, Sizes, Tag>> = true;
template <class S, std::size_t N, xt::layout_type L, class Tag>
inline constexpr bool is_container<xt::xtensor_container<S, N, L, Tag>> = true;

// Whether a lazy reduction with keep_dims may be broadcast in an expression: xtensor (0.24 to 0.27)
// takes wrong elements of it, and reads beyond its rows.
template <class E>
inline constexpr bool keeps_dims = false;
template <class F, class E, class X, class O>
inline constexpr bool keeps_dims<xt::xreducer<F, E, X, O>> = O::keep_dims::value;
template <class F, class... E>
inline constexpr bool keeps_dims<xt::xfunction<F, E...>> =
    (keeps_dims<std::remove_cvref_t<E>> || ...);
template <class E>
inline constexpr bool broadcasts_reduction = false;
template <template <class...> class Closure, class... E>
inline constexpr bool broadcasts_reduction<Closure<E...>> =
    (broadcasts_reduction<std::remove_cvref_t<E>> || ...);
template <class E, class S, xt::layout_type L, class F>
inline constexpr bool broadcasts_reduction<xt::xstrided_view<E, S, L, F>> =
    broadcasts_reduction<std::remove_cvref_t<E>>;
template <class E, class S>
inline constexpr bool broadcasts_reduction<xt::xbroadcast<E, S>> =
    keeps_dims<std::remove_cvref_t<E>> || broadcasts_reduction<std::remove_cvref_t<E>>;
template <class F, class... E>
inline constexpr bool broadcasts_reduction<xt::xfunction<F, E...>> =
    (broadcasts_reduction<std::remove_cvref_t<E>> || ...) ||
    (keeps_dims<xt::xfunction<F, E...>> &&
     (!xt::is_xscalar<std::remove_cvref_t<E>>::value + ...) > 1);

template <class T, class E>
Array<T> from_xtensor(E&& e) {
  using Expression = std::remove_cvref_t<E>;
  static_assert(
      !broadcasts_reduction<Expression>,
      "xtensor broadcasts a lazy reduction with keep_dims wrongly: put xt::eval() around it");
  const Shape shape(e.shape().begin(), e.shape().end());
  if constexpr (is_container<Expression>)
    if (std::cmp_less(e.storage().size(), numel(shape)))
      throw ValueError("a Tensor from an xtensor array that was moved from");
  if constexpr (!std::is_reference_v<E> && !std::is_const_v<E> && is_container<Expression> &&
                std::is_same_v<value_type_of<E>, T>)
    if (numel(shape) > 0 && e.layout() == xt::layout_type::row_major) {
      const auto owner = std::make_shared<Expression>(std::forward<E>(e));
      return {std::shared_ptr<T>(owner, owner->data()), shape};
    }
  Array<T> array = empty_array<T>(shape);
  auto to = xt::adapt<xt::layout_type::row_major>(
      array.data(), array.size(), xt::no_ownership(),
      xt::dynamic_shape<std::size_t>(shape.begin(), shape.end()));
  xt::noalias(to) = xt::cast<T>(e);
  if constexpr (std::is_same_v<T, std::int64_t> && std::is_unsigned_v<value_type_of<E>>)
    if (std::any_of(array.begin(), array.end(), [](T v) { return v < 0; }))
      throw ValueError("Indices: an element is beyond 9223372036854775807, the largest int64");
  return array;
}

template <class T>
auto as_xtensor(std::shared_ptr<const T> memory, const Shape& shape) {
  const T* const first = memory.get();
  return xt::adapt_smart_ptr<xt::layout_type::row_major>(
      static_cast<const T*>(first), xt::dynamic_shape<std::size_t>(shape.begin(), shape.end()),
      std::move(memory));
}

}  // namespace detail

template <XtensorOfElements E>
Tensor::Tensor(E&& expression)
    : Tensor(detail::from_xtensor<detail::value_type_of<E>>(std::forward<E>(expression))) {}

template <class T>
template <XtensorOfIntegers<T> E>
DiscreteTensor<T>::DiscreteTensor(E&& expression)
    : DiscreteTensor(detail::from_xtensor<T>(std::forward<E>(expression))) {}

template <class E>
auto Tensor::array() const {
  const E* const first = static_cast<const Tensor&>(*this).data<E>();
  return detail::as_xtensor(std::shared_ptr<const E>(identity().value->memory, first), shape());
}

template <class T>
auto DiscreteTensor<T>::array() const {
  return detail::as_xtensor(std::shared_ptr<const T>(array_, array_->data()), shape());
}

template <class F>
void Tensor::update(F&& f) {
  check_updatable();
  dispatch(dtype(), [&]<class T>() {
    XArray<T> copy = array<T>();
    f(copy);
    set_value(detail::make_pooled<Value>(detail::from_xtensor<T>(std::move(copy))));
  });
}

}  // namespace xgrad
