#pragma once
// How kernels see an array that they work on along one dimension.

#include <cstddef>
#include <vector>
#include <xgrad/autograd/buffer.hpp>

namespace xgrad::kernels {

/// A row-major array seen as (outer, n, inner): the work goes along n.  With inner 1 that is along
/// contiguous rows, else down columns.
struct Axis {
  std::size_t outer = 1, n = 1, inner = 1;
  std::size_t numel() const { return outer * n * inner; }
};

/// Memory for intermediate results.
template <class T>
using Scratch = std::vector<T, Allocator<T>>;

/// Dimension dim of a shape; a 0-d shape has one of size 1.
inline Axis axis_of(const Shape& shape, std::size_t dim) {
  Axis axis;
  for (std::size_t d = 0; d < shape.size(); ++d)
    (d < dim ? axis.outer : d == dim ? axis.n : axis.inner) *= shape[d];
  return axis;
}

}  // namespace xgrad::kernels
