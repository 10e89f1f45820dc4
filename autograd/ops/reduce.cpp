// Sums, means, variances and products.  All gradients here are made of catalogue ops.

#include <algorithm>
#include <cmath>
#include <limits>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/generator.hpp>
#include <xgrad/autograd/kernels/moments.hpp>
#include <xgrad/autograd/kernels/reduce.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/reduced.hpp>
#include <xgrad/autograd/ops/rules.hpp>

namespace xgrad {

using kernels::Axis;

// ---- sums and means ----

namespace {

Tensor sum_over(const char* op, const Tensor& x, const Reduced& dims, const Shape& shape) {
  return record(
      op, {x},
      [dims, shape]<class T>(std::span<const Tensor> in) {
        return reduce<T>(in[0], dims, shape, kernels::sum<T>);
      },
      [dims](Context& ctx) { ctx.add(0, expand(kept(ctx.gradient(), dims), dims.before())); });
}

}  // namespace

XGRAD_RULE(sum, "Σ a", {"g, for each element that was added"},
           "Each element counts once in the sum, so each gets the whole gradient.");
Tensor sum(const Tensor& x) { return sum(x, {}); }

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "sum");
  const Shape shape = reduced.after(keepdim);
  if (x.dim() > 0 && reduced.contains(0) && numel(shape) == 1)
    detail::check_sum(x.shape().begin()[0]);
  return sum_over("sum", x, reduced, shape);
}
Tensor sum(const Tensor& x, const Dims& dims, bool keepdim, DType dtype) {
  return sum(to(x, dtype), dims, keepdim);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape)
    return x;
  if (broadcast_shapes(x.shape(), shape, "sum_to") != x.shape())
    fail<ShapeError>("sum_to: {} does not broadcast to the shape {} of x", to_string(shape),
                     to_string(x.shape()));
  return sum_over("sum_to", x, Reduced(x.shape(), shape), shape);
}

namespace {

template <class T>
Array<T> average(const Tensor& x, const Reduced& dims, const Shape& shape, double count) {
  auto y = reduce<T>(x, dims, shape, kernels::sum<T>);
  const auto finite = [](T v) { return std::isfinite(v); };
  const bool in_range = std::all_of(y.data(), y.data() + y.size(), finite);
  for (T* v = y.data(); v < y.data() + y.size(); ++v)
    *v /= static_cast<T>(count);
  if (in_range || count == 0)
    return y;
  // Sums that leave the range are taken of elements divided by a power of two.
  const double part = std::ldexp(1.0, -1 - std::ilogb(count));
  const auto sums = reduce<T>(x * part, dims, shape, kernels::sum<T>);
  for (std::size_t i = 0; i < y.size(); ++i)
    if (!finite(y.data()[i]))
      y.data()[i] = sums.data()[i] / static_cast<T>(count * part);
  return y;
}

}  // namespace

XGRAD_RULE(mean, "Σ a / n", {"g / n, for each element"}, "Each of the n elements counts 1/n.");
Tensor mean(const Tensor& x) { return mean(x, {}); }

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "mean");
  const auto count = static_cast<double>(reduced.count());
  return record(
      "mean", {x},
      [reduced, keepdim, count]<class T>(std::span<const Tensor> in) {
        return average<T>(in[0], reduced, reduced.after(keepdim), count);
      },
      [reduced, count](Context& ctx) {
        ctx.add(0, expand(kept(ctx.gradient(), reduced) / std::max(count, 1.0), reduced.before()));
      });
}

// ---- variance ----

// A mean is rounded to its own last place, which can be more than the deviations: the mean of what
// is left takes that away.  The map is symmetric: it is its own derivative.
Tensor deviations(const Tensor& x, const Dims& dims) {
  return record(
      "deviations", {x},
      [dims](std::span<const Tensor> in) {
        const Tensor rough = in[0] - mean(in[0], dims, true);
        return rough - mean(rough, dims, true);
      },
      [dims](Context& ctx) { ctx.add(0, deviations(ctx.gradient(), dims)); });
}

namespace {

// Never negative, so that too few elements give NaN or infinity.
double degrees(const Reduced& dims, double correction) {
  return std::max(0.0, static_cast<double>(dims.count()) - correction);
}

template <class T>
Array<T> variance(const Tensor& x, const Reduced& dims, const Shape& shape, double correction,
                  bool root) {
  auto y = empty_array<T>(shape);
  const Tensor rows = rows_of(x, dims);
  kernels::variance(y.size(), dims.count(), rows.data<T>(), degrees(dims, correction), root,
                    y.data());
  return y;
}

}  // namespace

Tensor var(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "var");
  return record(
      "var", {x},
      [reduced, correction, keepdim]<class T>(std::span<const Tensor> in) {
        return variance<T>(in[0], reduced, reduced.after(keepdim), correction, false);
      },
      [saved = Saved(x), dims, reduced, correction](Context& ctx) {
        const Tensor g = kept(ctx.gradient(), reduced) * (2 / degrees(reduced, correction));
        ctx.add(0, deviations(saved.tensor(), dims) * g);
      });
}

Tensor std(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "std");
  return record(
      "std", {x},
      [reduced, correction, keepdim]<class T>(std::span<const Tensor> in) {
        return variance<T>(in[0], reduced, reduced.after(keepdim), correction, true);
      },
      [saved = Saved(x), dims, reduced, correction](Context& ctx) {
        const Tensor y = kept(ctx.output(), reduced);
        const Mask flat = y == 0.0;  // there the gradient is 0, as in PyTorch, and not 0 / 0
        const Tensor g = kept(ctx.gradient(), reduced) / degrees(reduced, correction);
        // first by y: that ratio stays in the range
        const Tensor ratio = deviations(saved.tensor(), dims) / masked_fill(y, flat, 1);
        ctx.add(0, ratio * masked_fill(g, flat, 0));
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

// Powers of two for factors x along an axis, so that no product of neighbours leaves the range: x
// times part is such a factor, and the product of all other x is that of all other factors, times
// first and then second.
struct Powers {
  Array<double> part, first, second;

  Powers(const Tensor& x, kernels::Axis axis)
      : part(empty_array<double>(x.shape())),
        first(empty_array<double>(x.shape())),
        second(empty_array<double>(x.shape())) {
    constexpr int most = std::numeric_limits<double>::max_exponent - 2;
    std::vector<int> exponents(axis.n);
    for (std::size_t line = 0; line < axis.outer * axis.inner; ++line) {
      const std::size_t begin = line / axis.inner * axis.n * axis.inner + line % axis.inner;
      double product = 1;  // of the factors so far: from 1/2 to 1, and less after subnormals
      int total = 0;
      for (std::size_t j = 0; j < axis.n; ++j) {
        const double v = x.data<double>()[begin + j * axis.inner];
        int e = 0, of_v = 0;
        if (v != 0 && std::isfinite(v)) {
          product = std::frexp(product * std::frexp(v, &of_v), &e);
          const int wanted = e + of_v;
          e = std::max(wanted, -most);
          product = std::ldexp(product, wanted - e);
        }
        total += exponents[j] = e;
      }
      for (std::size_t j = 0; j < axis.n; ++j) {
        const std::size_t at = begin + j * axis.inner;
        const int others = std::clamp(total - exponents[j], -2 * most, 2 * most);
        part.data()[at] = std::ldexp(1.0, -exponents[j]);
        first.data()[at] = std::ldexp(1.0, others / 2);
        second.data()[at] = std::ldexp(1.0, others - others / 2);
      }
    }
  }
};

// Neither 0 nor subnormal, nor infinite or NaN.
bool all_normal(const Tensor& x) {
  const double least = x.dtype() == DType::float32 ? double{std::numeric_limits<float>::min()}
                                                   : std::numeric_limits<double>::min();
  return all(abs(x.detach()) >= least) && all(isfinite(x));
}

// The product of all others along dim.  That is y / x, where this and what its own derivative is
// made of are neither 0 nor out of range.
Tensor product_of_others(const Tensor& x, const Tensor& y_kept, std::int64_t dim, bool twice) {
  if (x.dim() == 0)
    return ones_like(x);
  if (all_normal(y_kept)) {
    const Tensor others = y_kept / x;
    if (!twice || all_normal(others.detach() / x.detach()))
      return others;
  }
  const Tensor wide = to(x, DType::float64);
  Powers powers(wide, kernels::axis_of(x.shape(), normalize_dim(dim, x.dim(), "prod")));
  const Tensor part = wide * Tensor(std::move(powers.part));
  const Tensor others =
      product_of_earlier(part, dim) * flip(product_of_earlier(flip(part, dim), dim), dim);
  return to(others * Tensor(std::move(powers.first)) * Tensor(std::move(powers.second)), x.dtype());
}

Tensor prod_over(const Tensor& x, std::int64_t dim, bool keepdim) {
  const Reduced reduced(x.shape(), dim, "prod");
  return record(
      "prod", {x},
      [reduced, keepdim]<class T>(std::span<const Tensor> in) {
        return reduce<T>(in[0], reduced, reduced.after(keepdim), kernels::prod<T>);
      },
      [saved = Saved(x), reduced, dim](Context& ctx) {
        const Tensor g = kept(ctx.gradient(), reduced), y = kept(ctx.output(), reduced);
        const auto add = [&](bool twice) {
          ctx.add(0, g * product_of_others(saved.tensor(), y, dim, twice));
        };
        ops_or_kernel(
            ctx, [&] { add(true); }, [&]<class T>() { add(false); });
      },
      {.saves_output = true});
}

}  // namespace

Tensor prod(const Tensor& x) { return prod_over(x.dim() == 1 ? x : reshape(x, {-1}), 0, false); }

Tensor prod(const Tensor& x, std::int64_t dim, bool keepdim) { return prod_over(x, dim, keepdim); }
Tensor prod(const Tensor& x, DType dtype) { return prod(to(x, dtype)); }
Tensor prod(const Tensor& x, std::int64_t dim, bool keepdim, DType dtype) {
  return prod(to(x, dtype), dim, keepdim);
}

}  // namespace xgrad
