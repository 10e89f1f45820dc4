#pragma once
// Arrays: the only file that includes xtensor, and it hides the differences between xtensor's
// versions.
//
// Array<T> is an xtensor xarray, row-major, on 64-byte aligned memory that is kept for reuse.  The
// allocator is named here and not left to xtensor's default, which changes with the compiler's
// flags: a program that is built without our flags must agree with the library on what an array is.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <xgrad/autograd/error.hpp>

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xarray.hpp>
#else
#include <xtensor/xtensor_config.hpp>
// The order of these three matters: each needs what the one before it declares.
#include <xtensor/xshape.hpp>
// (kept apart from its neighbours so that the formatter does not sort it)
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

#include <xtensor/xarray.hpp>
#endif

namespace xgrad {

/// Bytes aligned to 64, from a cache of freed blocks: fresh large blocks cost page faults.  The
/// cache is per thread.
void* allocate_bytes(std::size_t bytes);
void free_bytes(void* block, std::size_t bytes) noexcept;

/// A standard allocator on allocate_bytes.
template <class T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>&) noexcept {}
  T* allocate(std::size_t n) {
    if (n > static_cast<std::size_t>(-1) / (2 * sizeof(T)))
      throw std::bad_array_new_length();
    return static_cast<T*>(allocate_bytes(n * sizeof(T)));
  }
  void deallocate(T* block, std::size_t n) noexcept { free_bytes(block, n * sizeof(T)); }
  friend bool operator==(const Allocator&, const Allocator&) { return true; }
};

/// A shared object in a block of allocate_bytes: a graph makes and drops many small ones.
template <class T, class... Args>
std::shared_ptr<T> make_pooled(Args&&... args) {
  return std::allocate_shared<T>(Allocator<T>(), std::forward<Args>(args)...);
}

/// A row-major xtensor array.
template <class T>
using Array = xt::xarray<T, xt::layout_type::row_major, Allocator<T>>;

/// The sizes of an array's dimensions; empty for a 0-d array, which holds one element.
using Shape = xt::dynamic_shape<std::size_t>;

/// The type of a Tensor's elements.  A property of the value, not of the C++ type, as in PyTorch.
enum class DType : std::uint8_t { float32, float64 };

template <class T>
inline constexpr DType dtype_of = std::is_same_v<T, float> ? DType::float32 : DType::float64;

/// Calls f.operator()<float>() or f.operator()<double>(), by dtype.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  return dtype == DType::float32 ? f.template operator()<float>() : f.template operator()<double>();
}

/// An array of this shape with uninitialised elements.
template <class T>
Array<T> empty_array(const Shape& shape) {
  return Array<T>::from_shape(shape);
}

/// The product of the sizes; 1 for a 0-d shape.
std::size_t numel(const Shape& shape);

/// "(2, 5, 7)", "(3,)", "()".
std::string to_string(const Shape& shape);

/// "float32", "float64".
const char* to_string(DType dtype);

/// The shape of a op b by NumPy's rules: aligned at the last dimension, sizes equal or 1.  Throws
/// ShapeError naming op.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

/// One size or dimension as a user writes it: any integer type, negative ones allowed where they
/// mean something.
struct Dim {
  std::int64_t value;
  template <class I>
  requires(std::is_integral_v<I> && !std::is_same_v<I, bool>) constexpr Dim(I v)
      : value(static_cast<std::int64_t>(v)) {}
  constexpr operator std::int64_t() const { return value; }
};

/// A list of sizes or dimensions: {2, -1}, a Shape, a vector of integers, or a single integer.
class Dims : public std::vector<std::int64_t> {
 public:
  Dims() = default;
  Dims(std::initializer_list<Dim> list) { assign(list.begin(), list.end()); }
  Dims(const Shape& shape) {
    for (const std::size_t size : shape)
      push_back(static_cast<std::int64_t>(size));
  }
  Dims(const std::vector<std::int64_t>& list) : std::vector<std::int64_t>(list) {}
  template <class I>
  requires(std::is_integral_v<I> && !std::is_same_v<I, bool>) Dims(I one)
      : std::vector<std::int64_t>{static_cast<std::int64_t>(one)} {}
};

/// The shape that a list of sizes names.  Throws ShapeError naming op if one is negative or their
/// product overflows.
Shape to_shape(const Dims& sizes, const char* op);

/// A dimension counted from the front: -1 is the last of rank.  Throws ValueError naming op if it
/// is out of range.
std::size_t normalize_dim(std::int64_t dim, std::size_t rank, const char* op);

/// The row-major strides of a shape, in elements.
std::vector<std::size_t> row_major_strides(const Shape& shape);

}  // namespace xgrad
