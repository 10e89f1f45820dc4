#pragma once
// Moves elements by index, and selects the k largest.  Indices are within range: the ops check
// them.  If several elements go to one place, sums add them in the order of the index, and
// replacements keep the last.

#include <cstdint>
#include "odometer.hpp"

namespace xgrad::kernels {

/// y[o][j] = x[o][index[j]]: x is (outer, n, inner), y (outer, count, inner).
template <class T>
void index_select(Axis axis, const T* x, const std::int64_t* index, std::size_t count, T* y);

/// y[o][index[j]] += x[o][j]: y is (outer, n, inner), x (outer, count, inner).
template <class T>
void index_add(Axis axis, T* y, const std::int64_t* index, std::size_t count, const T* x);

/// y[i][j][k] = x[i][index[i][j][k]][k] for dim 1, and so on.  y has the index's shape, x its rank
/// (1 or more); x's other dims are no smaller.
template <class T>
void gather(const T* x, const Shape& x_shape, std::size_t dim, const std::int64_t* index,
            const Shape& index_shape, T* y);

/// y[i][index[i][j][k]][k] += x[i][j][k] for dim 1, and so on: the shapes are those of gather, with
/// x and y exchanged.
template <class T>
void scatter_add(T* y, const Shape& y_shape, std::size_t dim, const std::int64_t* index,
                 const Shape& index_shape, const T* x);

/// The same, with = in place of +=.
template <class T>
void scatter(T* y, const Shape& y_shape, std::size_t dim, const std::int64_t* index,
             const Shape& index_shape, const T* x);

/// The indices of the k largest (or smallest) along n, in falling (rising) order: (outer, k,
/// inner).  Equal elements keep their order; NaN counts as largest.
template <class T>
void topk(Axis axis, const T* x, std::size_t k, bool largest, std::int64_t* indices);

}  // namespace xgrad::kernels
