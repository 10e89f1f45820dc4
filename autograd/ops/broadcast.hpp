#pragma once
// Loops on two arrays that broadcast, for elements of any type: comparisons, Indices and Masks.

#include <algorithm>
#include <type_traits>
#include <xgrad/autograd/buffer.hpp>
#include <xgrad/autograd/kernels/odometer.hpp>

namespace xgrad::detail {

/// f(a, b) with broadcasting.  ShapeError naming op.
template <class T, class F>
auto broadcast(const char* op, const Shape& a_shape, const T* a, const Shape& b_shape, const T* b,
               const F& f) {
  auto out = empty_array<std::invoke_result_t<F, T, T>>(broadcast_shapes(a_shape, b_shape, op));
  if (out.size() == 0)
    return out;
  const kernels::Rows<2> rows(out.shape(), {&a_shape, &b_shape});
  kernels::Odometer<2> row(rows.outer);
  for (std::size_t r = 0; r < rows.count; ++r, row.advance()) {
    const T* const x = a + row[0];
    const T* const y = b + row[1];
    auto* const to = out.data() + r * rows.length;
    // a loop for each way to walk, so that each is vectorised
    if (rows.step[0] == rows.step[1])
      std::transform(x, x + rows.length, y, to, f);
    else if (rows.step[0] == 0)
      std::transform(y, y + rows.length, to, [&f, c = *x](T v) { return f(c, v); });
    else
      std::transform(x, x + rows.length, to, [&f, c = *y](T v) { return f(v, c); });
  }
  return out;
}

}  // namespace xgrad::detail
