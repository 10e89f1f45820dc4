#include "elementwise.hpp"

#include <atomic>
#include "lines.hpp"

namespace xgrad::kernels {

template <class T>
void add_to(T* into, const T* from, std::size_t n) {
  parallel_for(n, elementwise_grain, [&](std::size_t begin, std::size_t end) {
    map_row<T, 2>(into + begin, {into + begin, from + begin}, {1, 1}, end - begin,
                  [](const auto& x, const auto& y) { return x + y; });
  });
}

template <class T>
bool all_finite(std::size_t n, const T* x) {
  std::atomic<bool> finite = true;
  parallel_for(n, 4 * elementwise_grain, [&](std::size_t begin, std::size_t end) {
    const Row<T> row(end - begin, begin);
    if (row.sums([&](auto i) { return i.load(x) - i.load(x); })[0] != 0)
      finite = false;
  });
  return finite;
}

// Calls f(step) with a step, 0 or 1, that is a compile-time constant.
template <class F>
static void with_constant(std::size_t step, const F& f) {
  if (step == 0)
    f(std::integral_constant<std::size_t, 0>());
  else
    f(std::integral_constant<std::size_t, 1>());
}

template <class T>
void choose(const Shape& shape, Operand<bool> mask, Operand<T> a, Operand<T> b, T* out) {
  if (numel(shape) == 0)
    return;
  const Rows<3> rows(shape, {&mask.shape, &a.shape, &b.shape});
  for_pieces<3>(rows, [&](std::size_t i, const std::array<std::size_t, 3>& at, std::size_t n) {
    const bool* const m = mask.data + at[0];
    const T* const x = a.data + at[1];
    const T* const y = b.data + at[2];
    T* const to = out + i;
    with_constant(rows.step[0], [&](auto m_by) {
      with_constant(rows.step[1], [&](auto x_by) {
        with_constant(rows.step[2], [&](auto y_by) {
          for (std::size_t j = 0; j < n; ++j) {
            const T p = x[j * x_by], q = y[j * y_by];  // load both, or the loop is not vectorised
            to[j] = m[j * m_by] ? p : q;
          }
        });
      });
    });
  });
}

#define XGRAD_INSTANTIATE(T)                          \
  template void add_to<T>(T*, const T*, std::size_t); \
  template bool all_finite<T>(std::size_t, const T*); \
  template void choose<T>(const Shape&, Operand<bool>, Operand<T>, Operand<T>, T*);
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)
#undef XGRAD_INSTANTIATE

}  // namespace xgrad::kernels
