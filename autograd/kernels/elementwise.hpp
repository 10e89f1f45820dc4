#pragma once
// Loops that apply a formula to the elements of broadcast arrays, a SIMD register at a time.

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include "../shape.hpp"
#include "odometer.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace xgrad::kernels {

/// into[i] += from[i], n elements.
template <class T>
void add_to(T* into, const T* from, std::size_t n);

/// Whether all n elements are finite.
template <class T>
bool all_finite(std::size_t n, const T* x);

/// Elements in one task for a thread.
inline constexpr std::size_t elementwise_grain = 16384;

/// Calls f(i, offsets, n) for chunks of the output: n elements from the i-th on, with each
/// operand's offset there.
template <std::size_t N>
void for_pieces(const Rows<N>& rows,
                FunctionRef<std::size_t, const std::array<std::size_t, N>&, std::size_t> f) {
  if (rows.outer.empty()) {  // one row, cut into chunks
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
    Odometer<N> row(rows.outer, begin);
    for (std::size_t r = begin; r < end; ++r, row.advance()) {
      std::array<std::size_t, N> offsets;
      for (std::size_t k = 0; k < N; ++k)
        offsets[k] = static_cast<std::size_t>(row[k]);
      f(r * rows.length, offsets, rows.length);
    }
  });
}

/// out[i] = f(in0[i], in1[i], ...), n elements; f takes and returns SIMD registers.  An operand
/// with step 0 stays at its first element.  The last elements go through a padded register, so
/// every element sees the same instructions.
template <class T, std::size_t N, class F>
void map_row(T* out, std::array<const T*, N> in, const std::array<std::size_t, N>& step,
             std::size_t n, const F& f) {
  using Lanes = simd::Batch<T>;
  constexpr std::size_t width = Lanes::size;
  alignas(64) T padded[N][width];
  for (std::size_t k = 0; k < N; ++k)
    if (step[k] == 0) {
      Lanes(*in[k]).store_aligned(padded[k]);
      in[k] = padded[k];
    }
  alignas(64) T padded_out[width];
  const std::size_t rest = n % width;
  T* to = out;
  for (std::size_t end = n - rest;; end = width) {  // all whole registers, then the padded rest
    for (std::size_t i = 0; i < end; i += width)
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        f(Lanes::load_unaligned(in[K] + i * step[K])...).store_unaligned(to + i);
      }(std::make_index_sequence<N>());
    if (to == padded_out) {
      std::copy_n(padded_out, rest, out + (n - rest));
      return;
    }
    if (rest == 0)
      return;
    for (std::size_t k = 0; k < N; ++k)
      if (step[k] != 0) {
        const T* const last = in[k] + (n - rest);
        Lanes(*last).store_aligned(padded[k]);
        std::copy_n(last, rest, padded[k]);
        in[k] = padded[k];
      }
    to = padded_out;
  }
}

/// A row-major operand.
template <class T>
struct Operand {
  const Shape& shape;
  const T* data;
};

/// out = f(operands...), broadcast to `shape`.
template <class T, std::size_t N, class F>
void map(const Shape& shape, T* out, const std::array<Operand<T>, N>& operands, const F& f) {
  if (numel(shape) == 0)
    return;
  std::array<const Shape*, N> shapes;
  for (std::size_t k = 0; k < N; ++k)
    shapes[k] = &operands[k].shape;
  const Rows<N> rows(shape, shapes);
  for_pieces<N>(rows, [&](std::size_t i, const std::array<std::size_t, N>& offsets, std::size_t n) {
    std::array<const T*, N> at;
    for (std::size_t k = 0; k < N; ++k)
      at[k] = operands[k].data + offsets[k];
    map_row<T, N>(out + i, at, rows.step, n, f);
  });
}

/// out = mask ? a : b, broadcast to `shape`.
template <class T>
void choose(const Shape& shape, Operand<bool> mask, Operand<T> a, Operand<T> b, T* out);

}  // namespace xgrad::kernels
