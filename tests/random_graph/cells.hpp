#pragma once
// Arrays of any kind of number, by plain loops over positions: broadcasts, groups, joins, products.

#include <algorithm>
#include <numeric>
#include <vector>
#include <xgrad/autograd/shape.hpp>

#include "helpers/positions.hpp"
#include "random_graph/dual.hpp"
#include "random_graph/random_graph.hpp"

namespace xgrad::testing {

template <class T>
struct Cells {
  Shape shape;
  std::vector<T> at;
};

template <class T, class F>
Cells<T> each(const Cells<T>& x, const F& f) {
  Cells<T> y = x;
  std::transform(x.at.begin(), x.at.end(), y.at.begin(), f);
  return y;
}

template <class T, class F>
Cells<T> each_pair(const Cells<T>& a, const Cells<T>& b, const F& f) {
  Cells<T> y{common_shape(a.shape, b.shape), {}};
  for (Size i = 0; i < numel(y.shape); ++i) {
    const Position p = position(i, y.shape);
    y.at.push_back(f(a.at[broadcast_from(p, a.shape)], b.at[broadcast_from(p, b.shape)], i));
  }
  return y;
}

// y[p] = x[from(p)]
template <class T, class F>
Cells<T> moved(const Cells<T>& x, const Shape& shape, const F& from) {
  Cells<T> y{shape, {}};
  for (Size i = 0; i < numel(shape); ++i)
    y.at.push_back(x.at[flat(from(position(i, shape)), x.shape)]);
  return y;
}

inline std::size_t dimension(std::int64_t dim, std::size_t rank) {
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim);
}

inline std::vector<bool> named(const std::vector<std::int64_t>& dims, std::size_t rank) {
  std::vector<bool> is(rank, dims.empty());
  for (const std::int64_t dim : dims)
    is[dimension(dim, rank)] = true;
  return is;
}

// x cut into groups along these dimensions, in row-major order within a group: for each group the
// flat positions of its elements.
inline std::vector<Position> groups(const Shape& shape, const std::vector<bool>& along) {
  Shape kept = shape;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (along[d])
      kept[d] = 1;
  std::vector<Position> result(numel(kept));
  for (Size i = 0; i < numel(shape); ++i)
    result[broadcast_from(position(i, shape), kept)].push_back(i);
  return result;
}

inline Shape without(const Shape& shape, const std::vector<bool>& along, bool keepdim) {
  Shape out;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (!along[d] || keepdim)
      out.push_back(along[d] ? 1 : shape[d]);
  return out;
}

// Every group becomes one element.
template <class T, class F>
Cells<T> reduced(const Cells<T>& x, const Step& step, const F& f) {
  const auto along = named(step.numbers, x.shape.size());
  Cells<T> y{without(x.shape, along, step.keepdim), {}};
  for (const Position& group : groups(x.shape, along)) {
    std::vector<T> elements;
    for (const std::size_t i : group)
      elements.push_back(x.at[i]);
    y.at.push_back(f(elements));
  }
  return y;
}

// Every group along the step's dimension becomes a group of the same size.
template <class T, class F>
Cells<T> rowwise(const Cells<T>& x, const Step& step, const F& f) {
  Cells<T> y = x;
  for (const Position& group : groups(x.shape, named({step.numbers[0]}, x.shape.size()))) {
    std::vector<T> row;
    for (const std::size_t i : group)
      row.push_back(x.at[i]);
    row = f(row);
    for (std::size_t k = 0; k < group.size(); ++k)
      y.at[group[k]] = row[k];
  }
  return y;
}

template <class T>
T total(const std::vector<T>& xs) {
  return std::accumulate(xs.begin(), xs.end(), T(0.0));
}
template <class T>
T average(const std::vector<T>& xs) {
  return total(xs) / T(static_cast<double>(xs.size()));
}
template <class T>
T squares_about(const std::vector<T>& xs, const T& centre) {
  T sum = 0.0;
  for (const T& x : xs)
    sum = sum + (x - centre) * (x - centre);
  return sum;
}
template <class T>
T sum_of_exp(const std::vector<T>& xs) {
  T sum = 0.0;
  for (const T& x : xs)
    sum = sum + exp(x);
  return sum;
}

// The xs joined along dim.
template <class T>
Cells<T> joined(const std::vector<const Cells<T>*>& xs, std::size_t dim) {
  Shape shape = xs[0]->shape;
  shape[dim] = 0;
  for (const auto* x : xs)
    shape[dim] += x->shape[dim];
  Cells<T> y{shape, {}};
  for (Size i = 0; i < numel(shape); ++i) {
    Position p = position(i, shape);
    std::size_t k = 0;
    for (; std::cmp_greater_equal(p[dim], xs[k]->shape[dim]); ++k)
      p[dim] -= xs[k]->shape[dim];
    y.at.push_back(xs[k]->at[flat(p, xs[k]->shape)]);
  }
  return y;
}

// (..., m, k), (..., k, n) -> (..., m, n) with broadcast batches.
template <class T>
Cells<T> product(const Cells<T>& a, const Cells<T>& b) {
  const auto batch = [](const Shape& s) { return Shape(s.begin(), s.end() - 2); };
  Shape shape = common_shape(batch(a.shape), batch(b.shape));
  shape.push_back(a.shape[a.shape.size() - 2]);
  shape.push_back(b.shape.back());
  Cells<T> y{shape, {}};
  for (Size i = 0; i < numel(shape); ++i) {
    Position left = position(i, shape), right = left;
    T sum = 0.0;
    for (Size k = 0; k < a.shape.back(); ++k) {
      left.back() = k;
      right[right.size() - 2] = k;
      sum = sum + a.at[broadcast_from(left, a.shape)] * b.at[broadcast_from(right, b.shape)];
    }
    y.at.push_back(sum);
  }
  return y;
}

}  // namespace xgrad::testing
