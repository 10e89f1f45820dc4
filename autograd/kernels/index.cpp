#include "index.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>
#include "parallel.hpp"

namespace xgrad::kernels {
namespace {

constexpr std::size_t piece = 16384;  // elements that are worth a task

std::size_t grain_of(std::size_t work) {
  return std::max<std::size_t>(1, piece / std::max<std::size_t>(1, work));
}

std::size_t position(std::int64_t index) { return static_cast<std::size_t>(index); }

// How gather and scatter walk an index of any rank: as rows along its last dimension.
struct IndexRows {
  std::size_t length, count;  // of a row, and rows
  std::size_t together;       // neighbouring rows that may reach the same elements
  std::size_t along;          // distance in x of neighbours along dim
  bool dim_is_last;

  std::vector<Dimension<1>> outer;  // offsets of rows in x, without the position along dim

  IndexRows(const Shape& x_shape, std::size_t dim, const Shape& index_shape)
      : length(index_shape.back()),
        count(length == 0 ? 0 : numel(index_shape) / length),
        together(1),
        along(row_major_strides(x_shape)[dim]),
        dim_is_last(dim + 1 == x_shape.size()) {
    const auto strides = row_major_strides(x_shape);
    // (an index without elements may have any rank)
    for (std::size_t d = 0; count > 0 && d + 1 < index_shape.size(); ++d) {
      outer.push_back({static_cast<std::size_t>(index_shape[d]),
                       {d == dim ? 0 : static_cast<std::ptrdiff_t>(strides[d])}});
      together *= d < dim ? 1 : static_cast<std::size_t>(index_shape[d]);
    }
  }
};

}  // namespace

template <class T>
void index_select(Axis axis, const T* x, const std::int64_t* index, std::size_t count, T* y) {
  const std::size_t inner = axis.inner;
  parallel_for(axis.outer * count, grain_of(inner), [&](std::size_t begin, std::size_t end) {
    std::size_t o = begin / count, j = begin % count;
    for (std::size_t row = begin; row < end; ++row) {
      const T* const from = x + (o * axis.n + position(index[j])) * inner;
      if (inner == 1)
        y[row] = *from;
      else
        std::copy_n(from, inner, y + row * inner);
      if (++j == count) {
        j = 0;
        ++o;
      }
    }
  });
}

// Several rows may have the same index, so work is divided by columns: every task goes through the
// whole index.
template <class T>
void index_add(Axis axis, T* y, const std::int64_t* index, std::size_t count, const T* x) {
  constexpr std::size_t tile = 64;
  const std::size_t inner = axis.inner, tiles = (inner + tile - 1) / tile;
  const std::size_t grain = grain_of(count * std::min(inner, tile));
  parallel_for(axis.outer * tiles, grain, [&](std::size_t begin, std::size_t end) {
    while (begin < end) {  // neighbouring tiles of one outer index are one wider tile
      const std::size_t o = begin / tiles, first = begin % tiles;
      const std::size_t last = std::min(tiles, first + (end - begin));
      const std::size_t from = first * tile, to = std::min(last * tile, inner);
      for (std::size_t j = 0; j < count; ++j) {
        T* const into = y + (o * axis.n + position(index[j])) * inner;
        const T* const row = x + (o * count + j) * inner;
        for (std::size_t c = from; c < to; ++c)
          into[c] += row[c];
      }
      begin += last - first;
    }
  });
}

// Calls combine(place, element) for each element of the index, with the element of x that it
// selects and its own of y.  If that writes to x, rows that may select the same elements are one
// task.
template <class X, class Y, class F>
static void each_element(X* x, const Shape& x_shape, std::size_t dim, const std::int64_t* index,
                         const Shape& index_shape, Y* y, const F& combine) {
  const IndexRows rows(x_shape, dim, index_shape);
  if (rows.count == 0)
    return;
  const std::size_t together = std::is_const_v<X> ? 1 : rows.together;
  const std::size_t grain = grain_of(together * rows.length);
  parallel_for(rows.count / together, grain, [&](std::size_t begin, std::size_t end) {
    Odometer<1> row(rows.outer, begin * together);
    for (std::size_t r = begin * together; r < end * together; ++r, row.advance()) {
      X* const at = x + row[0];
      const std::int64_t* const places = index + r * rows.length;
      Y* const own = y + r * rows.length;
      if (rows.dim_is_last)
        for (std::size_t j = 0; j < rows.length; ++j)
          combine(at[position(places[j])], own[j]);
      else
        for (std::size_t j = 0; j < rows.length; ++j)
          combine(at[position(places[j]) * rows.along + j], own[j]);
    }
  });
}

template <class T>
void gather(const T* x, const Shape& x_shape, std::size_t dim, const std::int64_t* index,
            const Shape& index_shape, T* y) {
  each_element(x, x_shape, dim, index, index_shape, y, [](T place, T& own) { own = place; });
}

template <class T>
void scatter_add(T* y, const Shape& y_shape, std::size_t dim, const std::int64_t* index,
                 const Shape& index_shape, const T* x) {
  each_element(y, y_shape, dim, index, index_shape, x, [](T& place, T own) { place += own; });
}

template <class T>
void scatter(T* y, const Shape& y_shape, std::size_t dim, const std::int64_t* index,
             const Shape& index_shape, const T* x) {
  each_element(y, y_shape, dim, index, index_shape, x, [](T& place, T own) { place = own; });
}

template <class T>
void topk(Axis axis, const T* x, std::size_t k, bool largest, std::int64_t* indices) {
  const std::size_t n = axis.n, inner = axis.inner;
  parallel_for(axis.outer * inner, grain_of(n), [&](std::size_t begin, std::size_t end) {
    std::vector<T> line(n);
    std::vector<std::int64_t> order(n);
    for (std::size_t l = begin; l < end; ++l) {
      const std::size_t o = l / inner, i = l % inner;
      for (std::size_t j = 0; j < n; ++j)
        line[j] = x[(o * n + j) * inner + i];
      const auto above = [](T a, T b) { return a > b || (std::isnan(a) && !std::isnan(b)); };
      const auto before = [&](std::int64_t p, std::int64_t q) {
        const T a = line[position(p)], b = line[position(q)];
        const bool a_first = largest ? above(a, b) : above(b, a);
        const bool b_first = largest ? above(b, a) : above(a, b);
        return a_first || (!b_first && p < q);
      };
      std::iota(order.begin(), order.end(), std::int64_t{0});
      if (k == n)
        std::sort(order.begin(), order.end(), before);
      else
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k),
                          order.end(), before);
      for (std::size_t j = 0; j < k; ++j)
        indices[(o * k + j) * inner + i] = order[j];
    }
  });
}

#define XGRAD_INSTANTIATE(T)                                                                      \
  template void index_select<T>(Axis, const T*, const std::int64_t*, std::size_t, T*);            \
  template void index_add<T>(Axis, T*, const std::int64_t*, std::size_t, const T*);               \
  template void gather<T>(const T*, const Shape&, std::size_t, const std::int64_t*, const Shape&, \
                          T*);                                                                    \
  template void scatter_add<T>(T*, const Shape&, std::size_t, const std::int64_t*, const Shape&,  \
                               const T*);                                                         \
  template void scatter<T>(T*, const Shape&, std::size_t, const std::int64_t*, const Shape&,      \
                           const T*);                                                             \
  template void topk<T>(Axis, const T*, std::size_t, bool, std::int64_t*);
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)
#undef XGRAD_INSTANTIATE
template void index_select(Axis, const std::int64_t*, const std::int64_t*, std::size_t,
                           std::int64_t*);
template void index_select(Axis, const bool*, const std::int64_t*, std::size_t, bool*);

}  // namespace xgrad::kernels
