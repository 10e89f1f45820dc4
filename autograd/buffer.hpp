#pragma once
// Values: contiguous, row-major views of shared memory.
//
// Memory is a std::shared_ptr to the view's first element.  Its owner may be anything: a block of
// allocate_bytes, a std::vector, an xtensor array, a mapped file.  A reshape, or a part of the
// first dimension, is another view of the same memory and copies nothing.
//
// Only a sole owner writes to memory.  Every view counts as an owner, so neither a view nor the
// array that it was taken from can change the other.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include "memory.hpp"
#include "sanitizers.hpp"
#include "shape.hpp"

namespace xgrad {

/// A row-major array that its only owner fills and then moves into a Tensor, Indices or Mask.
template <class T>
class Array {
 public:
  Array() : Array(nullptr, Shape{0}) {}  ///< no elements
  /// Memory for numel(shape) elements with its owner; null only if there are no elements.
  Array(std::shared_ptr<T> memory, const Shape& shape)
      : memory_(std::move(memory)), shape_(shape), size_(static_cast<std::size_t>(numel(shape))) {}
  Array(Array&&) noexcept = default;
  Array& operator=(Array&&) noexcept = default;

  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  const Shape& shape() const { return shape_; }
  std::size_t size() const { return size_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  friend struct Value;
  std::shared_ptr<T> memory_;
  Shape shape_;
  std::size_t size_;
};

/// An array of this shape with uninitialised elements.
template <class T>
Array<T> empty_array(const Shape& shape) {
  const auto n = static_cast<std::size_t>(numel(shape));
  Allocator<T> allocator;
  T* const block = allocator.allocate(n);
  return {
      std::shared_ptr<T>(block, [n](T* b) { Allocator<T>().deallocate(b, n); }, allocator), shape};
}

/// A copy of n elements, shaped.
template <class T>
Array<T> copy_of(const T* from, const Shape& shape) {
  Array<T> array = empty_array<T>(shape);
  std::copy_n(from, array.size(), array.data());
  return array;
}

/// The value of a Tensor: a view of float32 or float64 elements.  Tensors and formulas share it; it
/// does not change while it is shared.
struct Value {
  std::shared_ptr<void> memory;  ///< the first element, and a share in its ownership
  Shape shape;
  DType dtype;

  template <class T>
  Value(Array<T>&& array)
      : memory(std::move(array.memory_)), shape(std::move(array.shape_)), dtype(dtype_of<T>) {}
  /// The view of `whole` that begins at its element `offset`.
  Value(const std::shared_ptr<const Value>& whole, std::size_t offset, Shape window)
      : memory(whole->memory, static_cast<char*>(whole->memory.get()) + offset * whole->itemsize()),
        shape(std::move(window)),
        dtype(whole->dtype) {}
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  ~Value();

  std::size_t itemsize() const { return dtype == DType::float32 ? sizeof(float) : sizeof(double); }
  template <class T>
  const T* data() const {
    return static_cast<const T*>(memory.get());
  }
  template <class T>
  T* writable_data() const {  ///< for the sole owner
    drop_bfloat16();
    return static_cast<T*>(memory.get());
  }
  /// float32 elements rounded to bfloat16, which the first call makes; kept until they change.
  const std::uint16_t* bfloat16() const;

 private:
  void drop_bfloat16() const;

  mutable std::atomic<std::uint16_t*> bfloat16_ = nullptr;
};

namespace detail {

/// Whether this is the only handle on its object, so that the object may be changed.
template <class T>
bool is_only_handle(const std::shared_ptr<T>& handle) {
  // Acquire: writes made by former owners before their release are visible.  ThreadSanitizer does
  // not see fences, but it sees a handle that is made.
  if (handle.use_count() != 1)
    return false;
#if XGRAD_THREAD_SANITIZER
  [[maybe_unused]] const auto other = handle;
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
  return true;
}

/// Whether this handle is the only one on its value and its memory, so that the elements may be
/// written in place.
inline bool is_sole_owner(const std::shared_ptr<const Value>& value) {
  return is_only_handle(value) && is_only_handle(value->memory);
}

/// Makes this handle the sole owner of its elements: copies them if anything else shares them.
void make_sole_owner(std::shared_ptr<const Value>& value);

}  // namespace detail
}  // namespace xgrad
