#pragma once
// Loops that apply a formula to the elements of broadcast arrays, a SIMD register at a time.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>
#include <xgrad/autograd/array.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>
#include <xgrad/autograd/kernels/simd.hpp>

namespace xgrad::kernels {

/// into[i] += from[i], n elements.
template <class T>
void add_to(T* into, const T* from, std::size_t n);

/// How N row-major operands broadcast to an output, as rows of equal length.  Neighbouring
/// dimensions that every operand walks alike are merged, so equal shapes are one row.  step[k] is 1
/// where operand k moves along the row, 0 where it stays.
template <std::size_t N>
struct Rows {
  std::size_t count = 1, length = 1;
  std::array<std::size_t, N> step{};
  std::vector<std::size_t> outer;                   // sizes of the outer dimensions
  std::vector<std::array<std::size_t, N>> strides;  // of each operand along each outer dimension

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
      std::array<std::size_t, N> stride{};
      for (std::size_t k = 0; k < N; ++k) {
        const Shape& shape = *operands[k];
        const std::size_t missing = out.size() - shape.size();
        stride[k] = d < missing || shape[d - missing] == 1 ? 0 : dense[k][d - missing];
      }
      if (first) {
        length = out[d];
        step = stride;
        first = false;
      } else if (outer.empty() && continues(stride, step, length)) {
        length *= out[d];
      } else if (!outer.empty() && continues(stride, strides.back(), outer.back())) {
        outer.back() *= out[d];
      } else {
        outer.push_back(out[d]);
        strides.push_back(stride);
      }
    }
    for (const std::size_t size : outer)
      count *= size;
  }

  // Where row r of each operand begins.
  std::array<std::size_t, N> offsets(std::size_t r) const {
    std::array<std::size_t, N> at{};
    for (std::size_t d = 0; d < outer.size(); ++d) {
      const std::size_t i = r % outer[d];
      r /= outer[d];
      for (std::size_t k = 0; k < N; ++k)
        at[k] += i * strides[d][k];
    }
    return at;
  }

 private:
  static bool continues(const std::array<std::size_t, N>& outer_stride,
                        const std::array<std::size_t, N>& inner_stride, std::size_t inner_size) {
    for (std::size_t k = 0; k < N; ++k)
      if (outer_stride[k] != inner_stride[k] * inner_size)
        return false;
    return true;
  }
};

/// Elements in a piece of work for one thread.
inline constexpr std::size_t elementwise_grain = 16384;

/// Calls f(i, offsets, n) for pieces of the output: n elements from the i-th on, and where each
/// operand is there.
template <std::size_t N, class F>
void for_pieces(const Rows<N>& rows, const F& f) {
  if (rows.outer.empty()) {  // one row, cut into pieces
    parallel_for(rows.length, elementwise_grain, [&](std::size_t begin, std::size_t end) {
      std::array<std::size_t, N> offsets;
      for (std::size_t k = 0; k < N; ++k)
        offsets[k] = begin * rows.step[k];
      f(begin, offsets, end - begin);
    });
    return;
  }
  const std::size_t grain = std::max<std::size_t>(1, elementwise_grain / rows.length);
  parallel_for(rows.count, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r)
      f(r * rows.length, rows.offsets(r), rows.length);
  });
}

/// out[i] = f(in0[i], in1[i], ...), n elements, where f takes and returns SIMD registers.  An
/// operand with step 0 stays at its first element.  The last elements go through a padded register:
/// every element sees the same instructions.
template <class T, std::size_t N, class F>
void map_row(T* out, std::array<const T*, N> in, const std::array<std::size_t, N>& step,
             std::size_t n, const F& f) {
  using Lanes = simd::Batch<T>;
  constexpr std::size_t width = Lanes::size;
  alignas(64) T padded[N + 1][width];
  const auto apply = [&](std::size_t i) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return f(Lanes::load_unaligned(in[K] + i * step[K])...);
    }
    (std::make_index_sequence<N>());
  };
  if (n >= width) {
    for (std::size_t k = 0; k < N; ++k)
      if (step[k] == 0) {
        std::fill_n(padded[k], width, *in[k]);
        in[k] = padded[k];
      }
    std::size_t i = 0;
    for (; i + width <= n; i += width)
      apply(i).store_unaligned(out + i);
    if (i == n)
      return;
    out += i;
    for (std::size_t k = 0; k < N; ++k)
      in[k] += i * step[k];
    n -= i;
  }
  for (std::size_t k = 0; k < N; ++k) {
    const T* const from = in[k];
    T* const to = padded[k];
    for (std::size_t j = 0; j < width; ++j)
      to[j] = from[(j < n ? j : 0) * step[k]];
    in[k] = to;
  }
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    f(Lanes::load_aligned(in[K])...).store_aligned(padded[N]);
  }
  (std::make_index_sequence<N>());
  std::memcpy(out, padded[N], n * sizeof(T));
}

/// out = f(operands...), broadcast to out's shape.
template <class T, std::size_t N, class F>
void map(Array<T>& out, const std::array<const Array<T>*, N>& operands, const F& f) {
  std::array<const Shape*, N> shapes;
  std::array<const T*, N> data;
  for (std::size_t k = 0; k < N; ++k) {
    shapes[k] = &operands[k]->shape();
    data[k] = operands[k]->data();
  }
  if (out.size() == 0)
    return;
  const Rows<N> rows(out.shape(), shapes);
  for_pieces(rows, [&](std::size_t i, const std::array<std::size_t, N>& offsets, std::size_t n) {
    std::array<const T*, N> at;
    for (std::size_t k = 0; k < N; ++k)
      at[k] = data[k] + offsets[k];
    map_row<T, N>(out.data() + i, at, rows.step, n, f);
  });
}

/// A row-major operand.
template <class T>
struct Operand {
  const T* data;
  const Shape& shape;
};
/// out = mask ? a : b, broadcast to `shape`.
template <class T>
void choose(const Shape& shape, Operand<bool> mask, Operand<T> a, Operand<T> b, T* out);

}  // namespace xgrad::kernels
