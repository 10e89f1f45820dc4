#pragma once
// Shapes, parts and indexing.  Part of the catalogue: include ops.hpp.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>
#include "../tensor.hpp"

namespace xgrad {

// ---- shape, members (ops/shape.cpp, slice.cpp, indices.cpp) ----

/// The same elements in another shape; one size may be -1.  Shares memory and copies nothing, as do
/// view, flatten, squeeze, unsqueeze and parts of the first dimension.
Tensor reshape(const Tensor& x, const Dims& sizes);
Tensor view(const Tensor& x, const Dims& sizes);          ///< the same as reshape
Tensor reshape_as(const Tensor& x, const Tensor& other);  ///< reshape(x, other.shape())
Tensor view_as(const Tensor& x, const Tensor& other);     ///< the same
Tensor flatten(const Tensor& x, Dim start_dim = 0, Dim end_dim = -1);
/// Dimension dim of x divided into these sizes, of which one may be -1: the reverse of flatten.
/// ShapeError unless their product is the dimension's size.
Tensor unflatten(const Tensor& x, Dim dim, const Dims& sizes);
Tensor permute(const Tensor& x, const Dims& dims);
Tensor transpose(const Tensor& x, Dim dim0, Dim dim1);
Tensor swapaxes(const Tensor& x, Dim axis0, Dim axis1);  ///< the same
/// Dimension source[i] of x becomes destination[i]; the others keep their order.
Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination);
Tensor contiguous(const Tensor& x);  ///< x itself: every Tensor is contiguous
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, const Dims& dims);  ///< drops those of dims that have size 1
Tensor unsqueeze(const Tensor& x, Dim dim);
Tensor expand(const Tensor& x, const Dims& sizes);        ///< -1 keeps a size
Tensor broadcast_to(const Tensor& x, const Dims& sizes);  ///< the same as expand
Tensor expand_as(const Tensor& x, const Tensor& other);   ///< expand(x, other.shape())
/// x repeated sizes[d] times along each dimension d (Tensor.repeat); further sizes add dimensions
/// in front.
Tensor repeat(const Tensor& x, const Dims& sizes);
/// Each element `repeats` times in a row along dim, or element i repeats[i] times, with one number
/// for each element or for all (torch.repeat_interleave).  Without a dim, of the flattened x.
Tensor repeat_interleave(const Tensor& x, Dim repeats, OptionalDim dim = {});
Tensor repeat_interleave(const Tensor& x, const Indices& repeats, OptionalDim dim = {});
Tensor cat(const std::vector<Tensor>& xs, Dim dim = 0);
Tensor stack(const std::vector<Tensor>& xs, Dim dim = 0);
std::vector<Tensor> split(const Tensor& x, Size split_size, Dim dim = 0);
std::vector<Tensor> split(const Tensor& x, const Dims& split_sizes, Dim dim = 0);
template <std::floating_point F>
std::vector<Tensor> split(const Tensor& x, F split_size, Dim dim = 0) = delete;
std::vector<Tensor> chunk(const Tensor& x, Dim chunks, Dim dim = 0);
/// A fixed number of parts, for `const auto [k, v] = chunk<2>(x, -1)`; ValueError if there are more
/// or fewer.
template <std::size_t N>
std::array<Tensor, N> split(const Tensor& x, Size split_size, Dim dim = 0);
template <std::size_t N>
std::array<Tensor, N> split(const Tensor& x, const Dims& split_sizes, Dim dim = 0);
template <std::size_t N, std::floating_point F>
std::array<Tensor, N> split(const Tensor& x, F split_size, Dim dim = 0) = delete;
template <std::size_t N>
std::array<Tensor, N> chunk(const Tensor& x, Dim dim = 0);
/// x[start : end : step] along dim; start and end as in Python (negative from the end, clipped),
/// step > 0.
Tensor slice(const Tensor& x, Dim dim, OptionalDim start, OptionalDim end, Dim step = 1);
/// x[start : start + length] along dim; ValueError if there are fewer.
Tensor narrow(const Tensor& x, Dim dim, Dim start, Dim length);
Tensor select(const Tensor& x, Dim dim, Dim index);  ///< drops dim
/// A copy of x with src in place of select(x, dim, index), whose shape it has
/// (torch.select_scatter); in PyTorch also x[index] = src.
Tensor select_scatter(const Tensor& x, const Tensor& src, Dim dim, Dim index);
std::vector<Tensor> unbind(const Tensor& x, Dim dim = 0);  ///< select(x, dim, i) for all i
Tensor flip(const Tensor& x, const Dims& dims);
/// Rotates each dims[i] by shifts[i]: elements that leave at the end come in at the front.  Without
/// dims, the flattened x.
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims = {});
/// The diagonal of a matrix, `diagonal` places to the right of the main one; of 1-d x, a matrix of
/// zeros with x on that diagonal.
Tensor diag(const Tensor& x, Dim diagonal = 0);
Tensor tril(const Tensor& x,
            Dim diagonal = 0);  ///< zeros above the diagonal of the last two dimensions
Tensor triu(const Tensor& x, Dim diagonal = 0);  ///< zeros below it

// ---- padding and grids (ops/shape.cpp) ----

/// x with value around it (F.pad): pad {left, right} of the last dimension, then of the one before
/// it, ...; a negative number cuts off.
Tensor pad(const Tensor& x, const Dims& pad, double value = 0);
enum class Meshgrid { ij, xy };
/// The coordinates of a grid over 0-d or 1-d axes: out[k][i0][i1]... = axes[k][ik].  With xy the
/// first two dimensions are exchanged.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, Meshgrid indexing = Meshgrid::ij);

// ---- indexing (ops/index.cpp) ----

/// Python's start:end:step.
struct Slice {
  OptionalDim start = {}, end = {};
  Dim step = 1;
};
struct Ellipsis {};
struct NewAxis {};
/// One entry of an index: an integer (drops the dimension), a Slice, Ellipsis{}, NewAxis{}
/// (Python's None), or Indices, of which 0-d ones are an integer.
struct Index {
  std::variant<std::int64_t, Slice, Ellipsis, NewAxis, Indices> value;
  template <std::integral I>
  Index(I i) : value(static_cast<std::int64_t>(i)) {}
  Index(Slice slice) : value(slice) {}
  Index(Ellipsis) : value(Ellipsis{}) {}
  Index(NewAxis) : value(NewAxis{}) {}
  Index(const Indices& indices) : value(indices) {}
};
/// x[i, j:k, ..., None]: index(x, {0, Slice{1, 3}, Ellipsis{}}).  Several Indices broadcast, and
/// choose one element for each place: index(x, {i, j})[n] is x[i[n], j[n]].  Their shape stands
/// where they stood or, if another dimension was between them, in front.  Negative ones count from
/// the end, and an element that is chosen twice gets both gradients.  ValueError if an integer is
/// out of range, there are more indices than dimensions, or more than one Ellipsis; ShapeError if
/// Indices do not broadcast.
Tensor index(const Tensor& x, const std::vector<Index>& indices);

}  // namespace xgrad
