#pragma once
// What reshape, permute, slice, split and their like are made of: elements of a Tensor, Indices or
// a Mask picked in some order; none of a Tensor twice.

#include <optional>
#include <utility>
#include <vector>
#include <xgrad/autograd/ops.hpp>

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

// What each op selects of an x of this shape.  Errors name the op.
Selection reshaped(const char* op, const Shape& x, const Dims& sizes);
Selection flattened(const Shape& x, std::int64_t start_dim, std::int64_t end_dim);
Selection squeezed(const Shape& x);
Selection squeezed(const Shape& x, const Dims& dims);
Selection unsqueezed(const Shape& x, std::int64_t dim);
Selection expanded(const Shape& x, const Dims& sizes);  ///< strides 0: some elements several times
Selection permuted(const Shape& x, const Dims& dims);
Selection transposed(const Shape& x, std::int64_t dim0, std::int64_t dim1);
Selection sliced(const char* op, const Shape& x, std::int64_t dim,
                 std::optional<std::int64_t> start, std::optional<std::int64_t> end,
                 std::int64_t step);
Selection narrowed(const Shape& x, std::int64_t dim, std::int64_t start, Dim length);
Selection selected(const char* op, const Shape& x, std::int64_t dim, std::int64_t index);
Selection indexed(const Shape& x, const std::vector<Index>& indices);

/// True at (i, j) of the last two dimensions where j - i is at most `diagonal` for the op tril, or
/// at least that for triu.  ShapeError naming op.
Mask triangle(const char* op, const Shape& x, std::int64_t diagonal);

/// The selected elements of an array, copied.
template <class T>
Array<T> picked(const Selection& selection, const T* from);
/// Those of Indices or a Mask: a window where they lie side by side.
template <class T>
DiscreteTensor<T> pick(const DiscreteTensor<T>& x, const Selection& selection);
/// The selected elements of x.  Differentiable: each gradient goes where its element came from.
Tensor pick(const char* op, const Tensor& x, Selection selection);
/// Zeros of this shape, with g in the selected places: the derivative of pick(), and pick() is its.
Tensor place(const Tensor& g, const Shape& shape, Selection selection);

/// A copy of x with src in the selected places.  The gradient goes to x elsewhere, and to src from
/// them.  DTypeError and ShapeError naming op unless src has x's dtype and the selection's shape.
Tensor put(const char* op, const Tensor& x, const Tensor& src, Selection selection);

}  // namespace xgrad::detail
