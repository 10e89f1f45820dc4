#include "copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include "odometer.hpp"
#include "parallel.hpp"

namespace xgrad::kernels {
namespace {

using StridedDim = Walk::StridedDim;

constexpr std::size_t grain = 16384;  // elements in one task for a thread
constexpr std::size_t strip = 64;     // rows of a transposed matrix that are copied together

// The work on one element, and on a row of elements that is contiguous on both sides.
struct Assign {
  template <class V>
  static void put(V& to, const V& from) {
    to = from;
  }
  template <class T>
  static void row(T* to, const T* from, std::size_t n) {
    std::copy_n(from, n, to);
  }
};
struct Add {
  template <class V>
  static void put(V& to, const V& from) {
    to = to + from;
  }
  template <class T>
  static void row(T* to, const T* from, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      to[i] += from[i];
  }
};

// Sorts the axes by their strides in `to`, and merges neighbours that both sides walk as one.
// Returns false if there is nothing to do.
bool simplify(Walk& walk) {
  auto& axes = walk.axes;
  if (std::ranges::any_of(axes, [](const StridedDim& a) { return a.size == 0; }))
    return false;
  std::erase_if(axes, [](const StridedDim& a) { return a.size == 1; });
  for (StridedDim& a : axes)
    if (a.to < 0) {  // reversed
      walk.from += static_cast<std::ptrdiff_t>(a.size - 1) * a.from;
      walk.to += static_cast<std::ptrdiff_t>(a.size - 1) * a.to;
      a.from = -a.from;
      a.to = -a.to;
    }
  std::ranges::stable_sort(axes, std::ranges::greater(), &StridedDim::to);
  std::size_t kept = 0;
  for (std::size_t i = 1; i < axes.size(); ++i) {
    StridedDim& outer = axes[kept];
    const StridedDim& inner = axes[i];
    const auto n = static_cast<std::ptrdiff_t>(inner.size);
    if (outer.from == inner.from * n && outer.to == inner.to * n)
      outer = {outer.size * inner.size, inner.from, inner.to};
    else
      axes[++kept] = inner;
  }
  axes.resize(std::min(axes.size(), kept + 1));
  return true;
}

template <class Do, class T>
void walk_row(const T* from, T* to, StridedDim axis) {
  const auto n = static_cast<std::ptrdiff_t>(axis.size);
  if (axis.from == 1 && axis.to == 1)
    return Do::row(to, from, axis.size);
  if (axis.from == 0 && axis.to == 1) {
    const T value = *from;
    for (std::ptrdiff_t i = 0; i < n; ++i)
      Do::put(to[i], value);
    return;
  }
  for (std::ptrdiff_t i = 0; i < n; ++i)
    Do::put(to[i * axis.to], from[i * axis.from]);
}

// An 8 x 8 block.  An element's index has six bits, three of its row and three of its column;
// interleaving rows i and i + 4 rotates them by one, and three such steps exchange row and column.
template <class Do, class T>
void transpose_block(const T* from, std::ptrdiff_t from_stride, T* to, std::ptrdiff_t to_stride) {
  typedef T Row __attribute__((vector_size(8 * sizeof(T))));
  Row a[8], b[8];
  for (int i = 0; i < 8; ++i)
    std::memcpy(&a[i], from + i * from_stride, sizeof(Row));
  const auto interleave = [](const Row(&in)[8], Row(&out)[8]) {
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = __builtin_shufflevector(in[i], in[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      out[2 * i + 1] = __builtin_shufflevector(in[i], in[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
  };
  interleave(a, b);
  interleave(b, a);
  interleave(a, b);
  for (int i = 0; i < 8; ++i) {
    std::memcpy(&a[i], to + i * to_stride, sizeof(Row));
    Do::put(a[i], b[i]);
    std::memcpy(to + i * to_stride, &a[i], sizeof(Row));
  }
}

// rows: stride 1 in `from`; columns: stride 1 in `to`.  Adjacent blocks fill a cache line of `to`
// at a time; a strip too narrow for blocks is walked along its length.
template <class Do, class T>
void transpose(const T* from, T* to, StridedDim rows, StridedDim columns) {
  constexpr std::ptrdiff_t line = 64 / sizeof(T);
  const auto m = static_cast<std::ptrdiff_t>(rows.size);
  const auto n = static_cast<std::ptrdiff_t>(columns.size);
  if (m < 8) {
    for (std::ptrdiff_t r = 0; r < m; ++r)
      walk_row<Do>(from + r, to + r * rows.to, columns);
    return;
  }
  if (n < 8) {
    for (std::ptrdiff_t c = 0; c < n; ++c)
      walk_row<Do>(from + c * columns.from, to + c, rows);
    return;
  }
  for (std::ptrdiff_t j = 0; j < n; j += line)
    for (std::ptrdiff_t i = 0; i < m; i += 8) {
      const std::ptrdiff_t end_j = std::min(j + line, n), end_i = std::min(i + 8, m);
      std::ptrdiff_t k = j;
      for (; end_i - i == 8 && k + 8 <= end_j; k += 8)
        transpose_block<Do>(from + i + k * columns.from, columns.from, to + i * rows.to + k,
                            rows.to);
      for (std::ptrdiff_t r = i; r < end_i; ++r)
        for (std::ptrdiff_t c = k; c < end_j; ++c)
          Do::put(to[r * rows.to + c], from[r + c * columns.from]);
    }
}

template <class Do, class T>
void run(Walk& walk, const T* from, T* to) {
  if (!simplify(walk))
    return;
  auto& outer = walk.axes;
  StridedDim inner{1, 1, 1}, rows{1, 1, 1};
  if (!outer.empty()) {
    inner = outer.back();
    outer.pop_back();
  }
  const auto neighbours = std::ranges::find(outer, 1, &StridedDim::from);
  const bool transposes = inner.to == 1 && inner.from > 1 && neighbours != outer.end();
  if (transposes) {
    rows = *neighbours;
    outer.erase(neighbours);
  }
  // A work item is a strip of one matrix, or a part of one row.
  StridedDim& cut = transposes && rows.size >= inner.size ? rows : inner;
  const StridedDim whole = cut;
  const std::size_t length = transposes ? strip : grain;
  const std::size_t cuts = (whole.size + length - 1) / length;
  std::size_t items = cuts;
  std::vector<Dimension<2>> dimensions;
  for (const StridedDim& a : outer) {
    items *= a.size;
    dimensions.push_back({a.size, {a.from, a.to}});
  }
  cut.size = std::min(whole.size, length);
  const std::size_t elements = rows.size * inner.size;
  const auto do_items = [&](std::size_t begin, std::size_t end) {
    Odometer<2> at(dimensions, begin / cuts);
    std::size_t c = begin % cuts;
    for (std::size_t item = begin; item < end; ++item) {
      StridedDim part = whole;
      part.size = std::min(length, whole.size - c * length);
      const auto skip = static_cast<std::ptrdiff_t>(c * length);
      const T* const source = from + walk.from + at[0] + skip * whole.from;
      T* const target = to + walk.to + at[1] + skip * whole.to;
      if (!transposes)
        walk_row<Do>(source, target, part);
      else if (&cut == &rows)
        transpose<Do>(source, target, part, inner);
      else
        transpose<Do>(source, target, rows, part);
      if (++c == cuts) {
        c = 0;
        at.advance();
      }
    }
  };
  parallel_for(items, std::max<std::size_t>(1, grain / elements), do_items);
}

}  // namespace

template <class T>
void copy(Walk walk, const T* from, T* to) {
  run<Assign>(walk, from, to);
}
template void copy(Walk, const float*, float*);
template void copy(Walk, const double*, double*);
template void copy(Walk, const std::int64_t*, std::int64_t*);
template void copy(Walk, const unsigned char*, unsigned char*);

template <class T>
void add(Walk walk, const T* from, T* to) {
  run<Add>(walk, from, to);
}
template void add(Walk, const float*, float*);
template void add(Walk, const double*, double*);

template <class T>
void fill(T* to, std::size_t n, T value) {
  parallel_for(n, grain,
               [=](std::size_t begin, std::size_t end) { std::fill(to + begin, to + end, value); });
}
template void fill(float*, std::size_t, float);
template void fill(double*, std::size_t, double);

}  // namespace xgrad::kernels
