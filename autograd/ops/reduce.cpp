// Sums, means, variances and products.  All gradients here are made of catalogue ops.

#include <algorithm>
#include <cmath>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/reduce.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/reduced.hpp>

namespace xgrad {

using kernels::Axis;

// ---- sums and means ----

namespace {

Tensor sum_over(const char* op, const Tensor& x, const Reduced& dims, const Shape& shape) {
  return record(
      op, {x},
      [dims, shape](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          return Tensor(reduce<T>(in[0], dims, shape, kernels::sum<T>));
        });
      },
      [dims](Sink& sink) { sink.add(0, expand(kept(sink.gradient(), dims), dims.before())); });
}

}  // namespace

Tensor sum(const Tensor& x) { return sum(x, {}); }

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "sum");
  return sum_over("sum", x, reduced, reduced.after(keepdim));
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape)
    return x;
  if (broadcast_shapes(x.shape(), shape, "sum_to") != x.shape())
    fail<ShapeError>("sum_to: {} does not broadcast to the shape {} of x", to_string(shape),
                     to_string(x.shape()));
  return sum_over("sum_to", x, Reduced(x.shape(), shape), shape);
}

Tensor mean(const Tensor& x) { return mean(x, {}); }

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "mean");
  const auto count = static_cast<double>(reduced.count());
  return record(
      "mean", {x},
      [reduced, keepdim, count](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto y = reduce<T>(in[0], reduced, reduced.after(keepdim), kernels::sum<T>);
          for (T* v = y.data(); v < y.data() + y.size(); ++v)
            *v /= static_cast<T>(count);
          return Tensor(std::move(y));
        });
      },
      [reduced, count](Sink& sink) {
        sink.add(0,
                 expand(kept(sink.gradient(), reduced) / std::max(count, 1.0), reduced.before()));
      });
}

// ---- variance ----

namespace {

// The sum of squared deviations from the mean.  Over several groups of dimensions, the deviations
// within a group's rows are summed, and those of the rows' means, each as often as a row is long,
// come on top.
template <class T>
void squared_deviations(const Tensor& x, const Reduced& dims, T* y) {
  kernels::Scratch<T> means, squares;
  std::size_t counted = 1;
  bool started = false;
  dims.for_each_axis([&](Axis axis, bool is_last) {
    const std::size_t size = axis.outer * axis.inner;
    const T* const from = started ? means.data() : x.data<T>();
    kernels::Scratch<T> centre(size), about(is_last ? 0 : size);
    T* const to = is_last ? y : about.data();
    kernels::sum(axis, from, centre.data());
    for (T& c : centre)
      c /= static_cast<T>(axis.n);
    kernels::sum_squares_about(axis, from, centre.data(), to);
    if (started) {
      kernels::Scratch<T> within(size);
      kernels::sum(axis, squares.data(), within.data());
      for (std::size_t i = 0; i < size; ++i)
        to[i] = within[i] + static_cast<T>(counted) * to[i];
    }
    means = std::move(centre);
    squares = std::move(about);
    counted *= axis.n;
    started = true;
  });
}

// Never negative, so that too few elements give NaN or infinity.
double degrees(const Reduced& dims, double correction) {
  return std::max(0.0, static_cast<double>(dims.count()) - correction);
}

template <class T>
Array<T> variance(const Tensor& x, const Reduced& dims, const Shape& shape, double correction) {
  auto y = empty_array<T>(shape);
  squared_deviations(x, dims, y.data());
  for (T* v = y.data(); v < y.data() + y.size(); ++v)
    *v /= static_cast<T>(degrees(dims, correction));
  return y;
}

// d var / d x, times the gradient g of var.
Tensor variance_gradient(const Tensor& g, const Tensor& x, const Dims& dims, const Reduced& reduced,
                         double correction) {
  return (x - mean(x, dims, true)) * (kept(g, reduced) * (2 / degrees(reduced, correction)));
}

}  // namespace

Tensor var(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "var");
  return record(
      "var", {x},
      [reduced, correction, keepdim](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          return Tensor(variance<T>(in[0], reduced, reduced.after(keepdim), correction));
        });
      },
      [saved = Saved(x), dims, reduced, correction](Sink& sink) {
        sink.add(0, variance_gradient(sink.gradient(), saved.tensor(), dims, reduced, correction));
      });
}

Tensor std(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "std");
  return record(
      "std", {x},
      [reduced, correction, keepdim](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto y = variance<T>(in[0], reduced, reduced.after(keepdim), correction);
          for (T* v = y.data(); v < y.data() + y.size(); ++v)
            *v = std::sqrt(*v);
          return Tensor(std::move(y));
        });
      },
      [saved = Saved(x), dims, reduced, correction](Sink& sink) {
        const Tensor y = sink.output();
        const Mask flat = y == 0.0;  // there the gradient is 0, as in PyTorch, and not 0 / 0
        const Tensor g = masked_fill(sink.gradient() / (2.0 * masked_fill(y, flat, 1)), flat, 0);
        sink.add(0, variance_gradient(g, saved.tensor(), dims, reduced, correction));
      },
      {.saves_output = true});
}

// ---- products ----

namespace {

// Along dim, the product of all elements before each.  The distance doubles from step to step.
Tensor product_of_earlier(const Tensor& x, std::int64_t dim) {
  const std::size_t n = x.size(dim);
  Shape one = x.shape();
  one[normalize_dim(dim, x.dim(), "prod")] = 1;
  Tensor p = cat({ones(one, x.dtype()), narrow(x, dim, 0, n - 1)}, dim);
  for (std::size_t distance = 1; distance < n; distance *= 2) {
    const Tensor far = narrow(p, dim, static_cast<std::int64_t>(distance), n - distance);
    p = cat({narrow(p, dim, 0, distance), far * narrow(p, dim, 0, n - distance)}, dim);
  }
  return p;
}

// The product of all others along dim.  Where no factor is 0 that is y / x.
Tensor product_of_others(const Tensor& x, const Tensor& y_kept, std::int64_t dim) {
  if (x.dim() == 0)
    return ones_like(x);
  if (!any(x == 0.0))
    return y_kept / x;
  return product_of_earlier(x, dim) * flip(product_of_earlier(flip(x, dim), dim), dim);
}

Tensor prod_over(const Tensor& x, std::int64_t dim, bool keepdim) {
  const Reduced reduced(x.shape(), dim, "prod");
  return record(
      "prod", {x},
      [reduced, keepdim](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          return Tensor(reduce<T>(in[0], reduced, reduced.after(keepdim), kernels::prod<T>));
        });
      },
      [saved = Saved(x), reduced, dim](Sink& sink) {
        const Tensor g = kept(sink.gradient(), reduced), y = kept(sink.output(), reduced);
        sink.add(0, g * product_of_others(saved.tensor(), y, dim));
      },
      {.saves_output = true});
}

}  // namespace

Tensor prod(const Tensor& x) { return prod_over(x.dim() == 1 ? x : reshape(x, {-1}), 0, false); }

Tensor prod(const Tensor& x, std::int64_t dim, bool keepdim) { return prod_over(x, dim, keepdim); }

}  // namespace xgrad
