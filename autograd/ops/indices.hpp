#pragma once
// Ops of Indices and Masks, and conversions between them and Tensors.  Part of the catalogue:
// include ops.hpp.
//
// Names, arguments and errors are those of Tensor's ops.  xtensor has all others:
// Indices(ids.array() ^ 1).

#include <optional>
#include <vector>
#include "../ops.hpp"

namespace xgrad {

// ---- parts and shapes, members (ops/indices.cpp) ----

/// Shares memory and copies nothing, as do view, flatten, squeeze, unsqueeze and parts of the first
/// dimension.
template <class T>
DiscreteTensor<T> reshape(const DiscreteTensor<T>& x, const Dims& sizes);
template <class T>
DiscreteTensor<T> view(const DiscreteTensor<T>& x, const Dims& sizes);
template <class T>
DiscreteTensor<T> flatten(const DiscreteTensor<T>& x, Dim start_dim = 0, Dim end_dim = -1);
template <class T>
DiscreteTensor<T> unflatten(const DiscreteTensor<T>& x, Dim dim, const Dims& sizes);
template <class T>
DiscreteTensor<T> permute(const DiscreteTensor<T>& x, const Dims& dims);
template <class T>
DiscreteTensor<T> transpose(const DiscreteTensor<T>& x, Dim dim0, Dim dim1);
template <class T>
DiscreteTensor<T> squeeze(const DiscreteTensor<T>& x);
template <class T>
DiscreteTensor<T> squeeze(const DiscreteTensor<T>& x, const Dims& dims);
template <class T>
DiscreteTensor<T> unsqueeze(const DiscreteTensor<T>& x, Dim dim);
template <class T>
DiscreteTensor<T> expand(const DiscreteTensor<T>& x, const Dims& sizes);
template <class T>
DiscreteTensor<T> slice(const DiscreteTensor<T>& x, Dim dim, OptionalDim start, OptionalDim end,
                        Dim step = 1);
template <class T>
DiscreteTensor<T> narrow(const DiscreteTensor<T>& x, Dim dim, Dim start, Dim length);
template <class T>
DiscreteTensor<T> select(const DiscreteTensor<T>& x, Dim dim, Dim index);
template <class T>
DiscreteTensor<T> index_select(const DiscreteTensor<T>& x, Dim dim, const Indices& index);
template <class T>
DiscreteTensor<T> masked_select(const DiscreteTensor<T>& x, const Mask& mask);
template <class T>
DiscreteTensor<T> tril(const DiscreteTensor<T>& x, Dim diagonal = 0);
template <class T>
DiscreteTensor<T> triu(const DiscreteTensor<T>& x, Dim diagonal = 0);

// ---- sums, extremes and places, members ----

/// The sum; for a Mask, the number of trues.  No dims: over all.  Wraps around beyond int64.
template <class T>
Indices sum(const DiscreteTensor<T>& x, const Dims& dims = {}, bool keepdim = false);
/// Running sums; of a Mask, the number of trues so far.  Wrap around beyond int64.
template <class T>
Indices cumsum(const DiscreteTensor<T>& x, Dim dim);
/// min(max(x, min), max), where either bound may be std::nullopt; bounds broadcast.  True is 1.
/// Positions of rows with padding on the left: (mask.cumsum(-1) - 1).clamp(0, std::nullopt).
template <class T>
Indices clamp(const DiscreteTensor<T>& x, const std::optional<IndexOperand>& min,
              const std::optional<IndexOperand>& max);
template <class T>
DiscreteTensor<T> max(const DiscreteTensor<T>& x);  ///< 0-d; ShapeError if there are none
template <class T>
DiscreteTensor<T> min(const DiscreteTensor<T>& x);
template <class T>
bool any(const DiscreteTensor<T>& x);
template <class T>
Mask any(const DiscreteTensor<T>& x, const Dims& dims, bool keepdim = false);
template <class T>
bool all(const DiscreteTensor<T>& x);
template <class T>
Mask all(const DiscreteTensor<T>& x, const Dims& dims, bool keepdim = false);
/// The positions of elements that are not 0, in order: (n, dimensions of x).
template <class T>
Indices nonzero(const DiscreteTensor<T>& x);
template <class T>
Tensor to(const DiscreteTensor<T>& x, DType dtype);  ///< rounded; true is 1
template <class T>
Indices to_indices(const DiscreteTensor<T>& x);  ///< true is 1

// ---- Tensors by masks, members ----

/// The elements of x where the mask is true, in order: (n,).  x and mask broadcast.  x[mask], with
/// a mask of x's first dimensions' sizes, is (n, the others).  The gradient goes back to the
/// elements.
Tensor masked_select(const Tensor& x, const Mask& mask);
/// The same numbers as Indices.  ValueError names the first that is not an integer in int64, and
/// its place; PyTorch's long() converts it to some number.
Indices to_indices(const Tensor& x);

// ---- joining and choosing ----

Indices cat(const std::vector<Indices>& xs, Dim dim = 0);
Mask cat(const std::vector<Mask>& xs, Dim dim = 0);
Indices stack(const std::vector<Indices>& xs, Dim dim = 0);
Mask stack(const std::vector<Mask>& xs, Dim dim = 0);
template <class T>
DiscreteTensor<T> index(const DiscreteTensor<T>& x, const std::vector<Index>& indices);
/// Elementwise condition ? a : b, of two numbers.
Tensor where(const Mask& condition, double a, double b, DType dtype = DType::float32);
/// (...) -> (..., num_classes): 1 where the last index is the id, else 0 (F.one_hot).  num_classes
/// defaults to the largest id plus 1.  ValueError names an id outside, and its place.
Indices one_hot(const Indices& x, Dim num_classes = -1);

// ---- arithmetic of Indices and integers ----

/// Indices, or an integer that acts as 0-d Indices.
class IndexOperand {
 public:
  IndexOperand(const Indices& x) : value(x) {}
  template <Integer I>
  IndexOperand(I i) : IndexOperand(Dim(i), 0) {}
  Indices value;

 private:
  IndexOperand(Dim i, int);
};

// Operands broadcast.  + - * wrap around beyond int64.  / and % are Python's // and %: the quotient
// is rounded downward, the remainder has the divisor's sign; ValueError if a divisor is 0.
Indices operator+(const IndexOperand& a, const IndexOperand& b);
Indices operator-(const IndexOperand& a, const IndexOperand& b);
Indices operator*(const IndexOperand& a, const IndexOperand& b);
Indices operator/(const IndexOperand& a, const IndexOperand& b);
Indices operator%(const IndexOperand& a, const IndexOperand& b);
Indices operator-(const Indices& a);
Mask operator==(const IndexOperand& a, const IndexOperand& b);
Mask operator!=(const IndexOperand& a, const IndexOperand& b);
Mask operator<(const IndexOperand& a, const IndexOperand& b);
Mask operator<=(const IndexOperand& a, const IndexOperand& b);
Mask operator>(const IndexOperand& a, const IndexOperand& b);
Mask operator>=(const IndexOperand& a, const IndexOperand& b);
Indices maximum(const IndexOperand& a, const IndexOperand& b);
Indices minimum(const IndexOperand& a, const IndexOperand& b);
Mask maximum(const Mask& a, const Mask& b);  ///< a | b
Mask minimum(const Mask& a, const Mask& b);  ///< a & b
/// condition ? a : b, as where() of Tensors.
Indices where(const Mask& condition, const IndexOperand& a, const IndexOperand& b);

// ---- definitions ----

namespace detail {
template <class X>
X rows_where(const X& x, const Mask& mask);
}  // namespace detail

inline Tensor Tensor::operator[](const MaskIndex auto& mask) const {
  return detail::rows_where(*this, mask);
}
template <class T>
DiscreteTensor<T> DiscreteTensor<T>::operator[](const MaskIndex auto& mask) const {
  return detail::rows_where(*this, mask);
}
template <class T>
DiscreteTensor<T> DiscreteTensor<T>::operator[](Dim index) const {
  return select(0, index);
}
template <class T>
DiscreteTensor<T> DiscreteTensor<T>::operator[](const Slice& part) const {
  return slice(0, part.start, part.end, part.step);
}
#include "discrete_members_defined.inc"

}  // namespace xgrad
