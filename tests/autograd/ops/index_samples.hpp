#pragma once
// What the rows of indexing ops are made of: references by plain index arithmetic.

#include "autograd/ops/shape_rows.hpp"

namespace xgrad::testing {

inline std::size_t number(const Indices& index, std::size_t flat) {
  return static_cast<std::size_t>(index.data()[flat]);
}

// x as a list to add to.
inline std::vector<double> list_of(const Tensor& x) {
  return {x.data<double>(), x.data<double>() + x.numel()};
}

inline Tensor from_list(const Shape& shape, const std::vector<double>& values) {
  return sample_from(shape, [&](std::size_t i) { return values[i]; });
}

// Pseudo-random indices below `limit`; some repeat.
inline Indices some_indices(const Dims& sizes, std::size_t limit) {
  auto a = empty_array<std::int64_t>(to_shape(sizes, "some_indices"));
  for (std::size_t i = 0; i < a.size(); ++i)
    a.data()[i] = static_cast<std::int64_t>((i * 7 + i / 3 + 2) % limit);
  return a;
}

inline Shape with_size(const Dims& sizes, std::size_t d, std::size_t size) {
  Shape shape = to_shape(sizes, "with_size");
  shape[d] = size;
  return shape;
}

/// An index along a dimension of x.
struct IndexCase {
  std::string name;
  Dims sizes;  // of x
  std::int64_t dim;
  Indices index;
  std::size_t d;  // dim, counted from the front
};

/// x with the elements of src where c's index says, each added to `keep` times what was there.
inline Tensor scattered(const IndexCase& c, const Inputs& in, double keep) {
  std::vector<double> y = list_of(in[0]);
  for (Size i = 0; i < c.index.numel(); ++i) {
    At at = position(i, c.index.shape());
    const double v = read(in[1], at);
    at[c.d] = number(c.index, i);
    double& there = y[flat(at, in[0].shape())];
    there = keep * there + v;
  }
  return from_list(in[0].shape(), y);
}

/// scatter_rows.cpp; part of index_rows().
std::vector<Row> scatter_rows();
/// masked_rows.cpp; the same.
std::vector<Row> masked_rows();

// element_rows.cpp
Row gather_row();
Row scatter_add_row();
Row cumsum_row();
Row cumprod_row();
Row topk_row();
Row sort_row();

}  // namespace xgrad::testing
