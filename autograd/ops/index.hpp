#pragma once
// Indices in ops, and selections: elements of an array that an op takes in some order.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include "../ops.hpp"
#include "../tensor.hpp"

namespace xgrad::detail {

/// ValueError unless every index is in [0, limit); names the index and its place.
void check_range(const char* op, const Indices& index, std::size_t limit);

/// A 0-d shape counts as one of a single element, as in PyTorch.
Shape at_least_1d(const Shape& shape);

/// The shape of index_select's result for an x of this shape, and of index_add's src.
Shape selected_shape(const char* op, const Shape& x, std::size_t dim, const Indices& index);

/// Checks an index of gather or scatter: it has the tensor's rank and is no larger off dim.  One
/// without elements fits anything.
void check_fits(const char* op, const Indices& index, const char* name, const Shape& tensor,
                std::optional<std::size_t> dim);

template <class X>
std::vector<Shape> shapes_of(const std::vector<X>& xs) {
  std::vector<Shape> shapes;
  for (const X& x : xs)
    shapes.push_back(x.shape());
  return shapes;
}

/// A copy of in[0] that `change(y, src)` has written to; src is the data of in[1].
template <class T, class F>
Array<T> changed_copy(std::span<const Tensor> in, const F& change) {
  auto y = copy_of(in[0].data<T>(), in[0].shape());
  change(y.data(), in[1].data<T>());
  return y;
}

// A Selection describes reshape, permute, slice, split and the like: they take elements of a
// Tensor, Indices or a Mask in some order, none of a Tensor twice.

/// Elements of a row-major array, arranged in a shape: element (i, j, ...) of `shape` is at offset
/// + i * strides[0] + j * strides[1] + ...
struct Selection {
  std::ptrdiff_t offset = 0;
  Shape shape;
  std::vector<std::ptrdiff_t> strides;

  /// All elements of an array with as many as `whole`, arranged as `whole`.
  explicit Selection(const Shape& whole);
  /// Along dimension d: `length` elements from `start` on, every step-th.
  void slice(std::size_t d, std::size_t start, std::size_t length, std::ptrdiff_t step = 1);
  void drop(std::size_t d);    ///< removes dimension d, at its first element
  void insert(std::size_t d);  ///< a dimension of size 1 before dimension d
  void permute(const std::vector<std::size_t>& dims);
};

/// The first element and the number of elements of Python's start:end:step in a dimension of size
/// n.  ValueError naming op unless step > 0.
std::pair<std::size_t, std::size_t> slice_range(const char* op, std::size_t n,
                                                std::optional<std::int64_t> start,
                                                std::optional<std::int64_t> end, std::int64_t step);

// The selection of each op for an x of this shape.  Errors name the op.
Selection reshaped(const char* op, const Shape& x, const Dims& sizes);
Selection flattened(const Shape& x, std::int64_t start_dim, std::int64_t end_dim);
Selection unflattened(const Shape& x, std::int64_t dim, const Dims& sizes);
Selection squeezed(const Shape& x);
Selection squeezed(const Shape& x, const Dims& dims);
Selection unsqueezed(const Shape& x, std::int64_t dim);
Selection expanded(const Shape& x, const Dims& sizes);  ///< with stride 0, elements repeat
Selection permuted(const Shape& x, const Dims& dims);
Selection transposed(const Shape& x, std::int64_t dim0, std::int64_t dim1);
Selection sliced(const char* op, const Shape& x, std::int64_t dim,
                 std::optional<std::int64_t> start, std::optional<std::int64_t> end,
                 std::int64_t step);
Selection narrowed(const Shape& x, std::int64_t dim, std::int64_t start, Dim length);
Selection selected(const char* op, const Shape& x, std::int64_t dim, std::int64_t index);

/// Indices that choose along dimension `dim` of a selection, dimension `of_x` of x.
struct IndexList {
  std::size_t dim, of_x;
  Indices indices;
};
/// The selection keeps all of a dimension that has Indices.
std::pair<Selection, std::vector<IndexList>> indexed(const Shape& x,
                                                     const std::vector<Index>& indices);
/// The elements of the selected x that the lists choose.
template <class X>
X chosen(const X& x, const std::vector<IndexList>& lists);

/// True at (i, j) of the last two dimensions where j - i is at most `diagonal` for the op tril, or
/// at least that for triu.  ShapeError naming op.
Mask triangle(const char* op, const Shape& x, std::int64_t diagonal);

/// The selected elements of an array, copied.
template <class T>
Array<T> strided_copy(const Selection& selection, const T* from);
/// The selected elements of Indices or a Mask: a view if they are contiguous.
template <class T>
DiscreteTensor<T> as_strided(const DiscreteTensor<T>& x, const Selection& selection);
/// The selected elements of x.  Differentiable: each gradient goes where its element came from.
Tensor as_strided(const char* op, const Tensor& x, Selection selection);
/// Zeros of this shape, with g in the selected places.  as_strided() and place() are each other's
/// derivatives.
Tensor place(const Tensor& g, const Shape& shape, Selection selection);

/// A copy of x with src in the selected places, whose gradients go to src; the others go to x.
/// DTypeError and ShapeError naming op unless src has x's dtype and the selection's shape.
Tensor as_strided_scatter(const char* op, const Tensor& x, const Tensor& src, Selection selection);

}  // namespace xgrad::detail
