#pragma once
// What reshape, permute, slice, split and their like are made of: elements of a Tensor picked in
// some order, none of them twice.

#include <optional>
#include <utility>
#include <vector>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::detail {

/// Which elements of a row-major array, and how they are arranged: element (i, j, ...) of `shape`
/// is at offset + i * strides[0] + j * strides[1] + ...
struct Selection {
  std::ptrdiff_t offset = 0;
  Shape shape;
  std::vector<std::ptrdiff_t> strides;

  /// All elements of an array that has as many as `whole`, arranged as `whole`.
  explicit Selection(const Shape& whole);
  /// Along dimension d: `length` elements, beginning with `start`, every step-th.
  void slice(std::size_t d, std::size_t start, std::size_t length, std::ptrdiff_t step = 1);
  void drop(std::size_t d);    ///< leaves dimension d out, at its first element
  void insert(std::size_t d);  ///< a dimension of size 1 before dimension d
  void permute(const std::vector<std::size_t>& dims);
};

/// The first element and the number of elements of Python's start:end:step in a dimension of size
/// n. ValueError naming op unless step > 0.
std::pair<std::size_t, std::size_t> slice_range(const char* op, std::size_t n,
                                                std::optional<std::int64_t> start,
                                                std::optional<std::int64_t> end, std::int64_t step);

/// The selected elements of x.  Differentiable: each gradient goes where its element came from.
Tensor pick(const char* op, const Tensor& x, Selection selection);
/// Zeros of this shape, with g in the selected places: the derivative of pick(), and pick() is its.
Tensor place(const Tensor& g, const Shape& shape, Selection selection);

/// A copy of x with src in the selected places.  The gradient goes to x elsewhere, and to src from
/// them.  DTypeError and ShapeError naming op unless src has x's dtype and the selection's shape.
Tensor put(const char* op, const Tensor& x, const Tensor& src, Selection selection);

}  // namespace xgrad::detail
