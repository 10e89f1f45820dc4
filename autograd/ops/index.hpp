#pragma once
// Indices in ops, and selections: the elements that an op takes, each at most once, in order.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/tensor.hpp>

namespace xgrad::detail {

/// Every index must be in [0, limit); the ValueError says which is not, and where it stands.
void check_range(const char* op, const Indices& index, std::size_t limit);

/// DTypeError unless the argument called `name` has x's dtype.
void check_same_dtype(const char* op, const Tensor& x, const char* name, const Tensor& src);

/// A 0-d shape counts as one of a single element, as in PyTorch.
Shape at_least_1d(const Shape& shape);

/// The shape of index_select's result for an x of this shape, and of index_add's src.
Shape selected_shape(const char* op, const Shape& x, std::size_t dim, const Indices& index);

/// The index of gather and scatter: of the tensor's rank, and no larger off dim.  One without
/// elements fits anything.
void check_fits(const char* op, const Indices& index, const char* name, const Shape& tensor,
                std::optional<std::size_t> dim);

/// A copy of in[0] that `change(y, src)` has written to, given the memory of in[1].
template <class T, class F>
Array<T> changed_copy(std::span<const Tensor> in, const F& change) {
  auto y = copy_of(in[0].data<T>(), in[0].shape());
  change(y.data(), in[1].data<T>());
  return y;
}

// Reshape, permute, slice, split and their like pick elements of a Tensor, Indices or a Mask in
// some order, none of a Tensor twice: a Selection.

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

// The selection of each op for an x of this shape.  Errors name the op.
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
/// The selected elements of Indices or a Mask: a window where they lie side by side.
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
