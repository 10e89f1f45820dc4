// Running sums, products, maxima and logarithms of sums.

#include <cmath>
#include <limits>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/kernels/index.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>

namespace xgrad {

using kernels::Axis;

// ---- sums ----

// The derivative of a running sum from the front is one from the back.
static Tensor cumsum(const Tensor& x, Axis axis, bool reverse) {
  return record(
      "cumsum", {x},
      [axis, reverse]<class T>(std::span<const Tensor> in) {
        auto y = empty_array<T>(in[0].shape());
        kernels::cumsum(axis, in[0].data<T>(), reverse, y.data());
        return y;
      },
      [axis, reverse](Context& ctx) { ctx.add(0, cumsum(ctx.gradient(), axis, !reverse)); });
}

Tensor cumsum(const Tensor& x, std::int64_t dim) {
  return cumsum(x, kernels::axis_of(x.shape(), normalize_dim(dim, x.dim(), "cumsum")), false);
}
Tensor cumsum(const Tensor& x, std::int64_t dim, DType dtype) { return cumsum(to(x, dtype), dim); }

// ---- products ----

namespace {

// Whether an element is the first along dim, or the last.
Mask at_end(const Shape& x, std::size_t dim, bool last) {
  Shape shape(x.size(), 1);
  shape[dim] = static_cast<std::size_t>(x[dim]);
  auto mask = empty_array<bool>(shape);
  for (std::size_t i = 0; i < mask.size(); ++i)
    mask.data()[i] = i == (last ? mask.size() - 1 : 0);
  return mask;
}

// y_i = a_i y_(i-1) + b_i along dim, y_0 = b_0, or in reverse from the last.  Added up in double.
// What a gets is y_(i-1) t_i and what b gets t_i, with t_i = g_i + a_(i+1) t_(i+1): the same from
// the other end.
Tensor recurrence(const Tensor& a, const Tensor& b, std::size_t dim, bool reverse) {
  return record(
      "recurrence", {a, b},
      [dim, reverse]<class T>(std::span<const Tensor> in) {
        const auto [outer, n, inner] = kernels::axis_of(in[1].shape(), dim);
        const T *const factor = in[0].data<T>(), *const term = in[1].data<T>();
        auto y = empty_array<T>(in[1].shape());
        std::vector<double> running(inner);
        for (std::size_t o = 0; o < outer; ++o)
          for (std::size_t k = 0; k < n; ++k) {
            const std::size_t row = (o * n + (reverse ? n - 1 - k : k)) * inner;
            for (std::size_t i = 0; i < inner; ++i) {
              const auto begun = k == 0 ? 0.0 : static_cast<double>(factor[row + i]) * running[i];
              running[i] = begun + static_cast<double>(term[row + i]);
              y.data()[row + i] = static_cast<T>(running[i]);
            }
          }
        return y;
      },
      [dim, reverse, a = Saved(a)](Context& ctx) {
        const auto d = static_cast<std::int64_t>(dim), forth = std::int64_t{reverse ? -1 : 1};
        const Tensor t = recurrence(roll(a.tensor(), -forth, d), ctx.gradient(), dim, !reverse);
        ctx.add(1, t);
        if (ctx.needs(0)) {
          const Mask begun = at_end(t.shape(), dim, reverse);  // 0 there, and not infinity times 0
          const Tensor before = masked_fill(roll(ctx.output(), forth, d), begun, 0);
          ctx.add(0, masked_fill(t, begun, 0) * before);
        }
      },
      {.saves_output = true});
}

}  // namespace

Tensor cumprod(const Tensor& x, std::int64_t dim) {
  const std::size_t d = normalize_dim(dim, x.dim(), "cumprod");
  if (x.dim() == 0)
    return clone(x);
  return recurrence(x, where(at_end(x.shape(), d, false), x, 0.0), d, false);
}

}  // namespace xgrad
