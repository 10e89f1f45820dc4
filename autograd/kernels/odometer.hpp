#pragma once
// Arrays as seen by kernels: several walked in step through the dimensions of a shape, or one along
// one dimension.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>
#include "../buffer.hpp"
#include "../shape.hpp"

namespace xgrad::kernels {

/// A dimension that N arrays are walked along, with each array's stride.
template <std::size_t N>
struct Dimension {
  std::size_t size;
  std::array<std::ptrdiff_t, N> strides;
};

/// A position in each of N arrays that advances in row-major order, without divisions.
template <std::size_t N>
class Odometer {
 public:
  /// Starts at this position.  The dimensions, outermost first, must outlive it.
  explicit Odometer(std::span<const Dimension<N>> dimensions, std::size_t position = 0)
      : dimensions_(dimensions), digits_(dimensions.size()) {
    for (std::size_t d = dimensions.size(); d-- > 0; position /= dimensions[d].size) {
      digits_[d] = position % dimensions[d].size;
      move(d, static_cast<std::ptrdiff_t>(digits_[d]));
    }
  }
  void advance() {
    for (std::size_t d = dimensions_.size(); d-- > 0;) {
      move(d, 1);
      if (++digits_[d] < dimensions_[d].size)
        return;
      digits_[d] = 0;
      move(d, -static_cast<std::ptrdiff_t>(dimensions_[d].size));
    }
  }
  std::ptrdiff_t operator[](std::size_t array) const { return at_[array]; }

 private:
  void move(std::size_t d, std::ptrdiff_t steps) {
    for (std::size_t k = 0; k < N; ++k)
      at_[k] += steps * dimensions_[d].strides[k];
  }

  std::span<const Dimension<N>> dimensions_;
  std::vector<std::size_t> digits_;
  std::array<std::ptrdiff_t, N> at_{};
};

/// N row-major operands that broadcast to an output, as rows of equal length.  Neighbouring
/// dimensions are merged if every operand allows it, so equal shapes are one row.  step[k] is 1 if
/// operand k moves along the row, 0 if it stays.
template <std::size_t N>
struct Rows {
  std::size_t count = 1, length = 1;
  std::array<std::size_t, N> step{};
  std::vector<Dimension<N>> outer;  // offsets of rows: Odometer(outer, row)

  Rows(const Shape& out, const std::array<const Shape*, N>& operands) {
    if (std::ranges::all_of(operands, [&](const Shape* s) { return *s == out; })) {
      length = numel(out);
      step.fill(1);
      return;
    }
    std::array<std::vector<std::size_t>, N> dense;
    for (std::size_t k = 0; k < N; ++k)
      dense[k] = row_major_strides(*operands[k]);
    bool first = true;
    for (std::size_t d = out.size(); d-- > 0;) {
      if (out[d] == 1)
        continue;
      Dimension<N> next{static_cast<std::size_t>(out[d]), {}};
      for (std::size_t k = 0; k < N; ++k) {
        const Shape& shape = *operands[k];
        const std::size_t missing = out.size() - shape.size();
        if (d >= missing && shape[d - missing] != 1)
          next.strides[k] = static_cast<std::ptrdiff_t>(dense[k][d - missing]);
      }
      if (first) {
        length = out[d];
        std::ranges::transform(next.strides, step.begin(), [](std::ptrdiff_t s) { return s != 0; });
        first = false;
      } else if (outer.empty() && continues(next, row())) {
        length *= out[d];
      } else if (!outer.empty() && continues(next, outer.back())) {
        outer.back().size *= out[d];
      } else {
        outer.push_back(next);
      }
    }
    std::ranges::reverse(outer);
    for (const Dimension<N>& dimension : outer)
      count *= dimension.size;
  }

 private:
  Dimension<N> row() const {
    Dimension<N> dimension{length, {}};
    std::ranges::copy(step, dimension.strides.begin());
    return dimension;
  }
  static bool continues(const Dimension<N>& outside, const Dimension<N>& inside) {
    for (std::size_t k = 0; k < N; ++k)
      if (outside.strides[k] != inside.strides[k] * static_cast<std::ptrdiff_t>(inside.size))
        return false;
    return true;
  }
};

/// A row-major array seen as (outer, n, inner).  Work goes along n: along contiguous rows if inner
/// is 1, else down columns.
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
