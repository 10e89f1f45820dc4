// Sums, means, variances, products, extrema, norms of vectors, and running sums and products.  All
// gradients here are made of catalogue ops.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include "../fail.hpp"
#include "../fused.hpp"
#include "../kernels/lines.hpp"
#include "../ops.hpp"
#include "../random.hpp"
#include "elementwise.hpp"
#include "reduced.hpp"
#include "rules.hpp"

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
      [dims](Context& ctx) {
        ctx.add(0, expand(as_keepdim(ctx.gradient(), dims), dims.before()));
      });
}

// Powers of two for the factors x_j along an axis, whose products may leave the range.  The scaled
// factors s_j = x_j part_j, with part_j = 2^-e_j, have products in it.  Over all i other than j,
//   prod x_i = first_j second_j prod s_i, where first_j second_j = 2^(sum e_i).
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

struct ExtremumKind {
  const char* op;
  bool largest;
};

}  // namespace

XGRAD_RULE(sum, "Σ a", {"g, for each element that was added"},
           "Each element counts once in the sum, so each gets the whole gradient.");
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

template <class T>
static Array<T> average(const Tensor& x, const Reduced& dims, const Shape& shape, double count) {
  auto y = reduce<T>(x, dims, shape, kernels::sum<T>);
  const auto finite = [](T v) { return std::isfinite(v); };
  const bool in_range = std::all_of(y.data(), y.data() + y.size(), finite);
  for (T* v = y.data(); v < y.data() + y.size(); ++v)
    *v /= static_cast<T>(count);
  if (in_range || count == 0)
    return y;
  // If the sum leaves the range, elements are divided by a power of two first.
  const double part = std::ldexp(1.0, -1 - std::ilogb(count));
  const auto sums = reduce<T>(x * part, dims, shape, kernels::sum<T>);
  for (std::size_t i = 0; i < y.size(); ++i)
    if (!finite(y.data()[i]))
      y.data()[i] = sums.data()[i] / static_cast<T>(count * part);
  return y;
}

XGRAD_RULE(mean, "Σ a / n", {"g / n, for each element"}, "Each of the n elements counts 1/n.");
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "mean");
  const auto count = static_cast<double>(reduced.count());
  return record(
      "mean", {x},
      [reduced, keepdim, count]<class T>(std::span<const Tensor> in) {
        return average<T>(in[0], reduced, reduced.after(keepdim), count);
      },
      [reduced, count](Context& ctx) {
        ctx.add(0, expand(as_keepdim(ctx.gradient(), reduced) / std::max(count, 1.0),
                          reduced.before()));
      });
}

// ---- variance ----

// A mean is rounded to its own last place, which can be more than the deviations, so the mean of
// the differences is subtracted as well.  The map is symmetric: it is its own derivative.
Tensor deviations(const Tensor& x, const Dims& dims) {
  return record(
      "deviations", {x},
      [dims](std::span<const Tensor> in) {
        const Tensor rough = in[0] - mean(in[0], dims, true);
        return rough - mean(rough, dims, true);
      },
      [dims](Context& ctx) { ctx.add(0, deviations(ctx.gradient(), dims)); });
}

// Never negative, so that too few elements give NaN or infinity.
static double degrees(const Reduced& dims, double correction) {
  return std::max(0.0, static_cast<double>(dims.count()) - correction);
}

static auto variance(const Reduced& dims, double correction, bool keepdim, bool root) {
  return [=]<class T>(std::span<const Tensor> in) {
    auto y = empty_array<T>(dims.after(keepdim));
    const Tensor rows = rows_of(in[0], dims);
    const std::size_t n = dims.count();
    kernels::for_rows(y.size(), n, [&](std::size_t r) {
      const kernels::ScaledMoments row(n, rows.data<T>() + r * n, true);
      const double v = row.squares / degrees(dims, correction);
      y.data()[r] = static_cast<T>(root ? std::sqrt(v) * row.scale : v * row.scale * row.scale);
    });
    return y;
  };
}

Tensor var(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "var");
  return record("var", {x}, variance(reduced, correction, keepdim, false),
                [saved = Saved(x), dims, reduced, correction](Context& ctx) {
                  const Tensor g =
                      as_keepdim(ctx.gradient(), reduced) * (2 / degrees(reduced, correction));
                  ctx.add(0, deviations(saved.tensor(), dims) * g);
                });
}

Tensor std(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "std");
  return record(
      "std", {x}, variance(reduced, correction, keepdim, true),
      [saved = Saved(x), dims, reduced, correction](Context& ctx) {
        const Tensor y = as_keepdim(ctx.output(), reduced);
        const Mask flat = y == 0.0;  // there the gradient is 0, as in PyTorch, and not 0 / 0
        const Tensor g = as_keepdim(ctx.gradient(), reduced) / degrees(reduced, correction);
        // first by y: that ratio stays in the range
        const Tensor ratio = deviations(saved.tensor(), dims) / masked_fill(y, flat, 1);
        ctx.add(0, ratio * masked_fill(g, flat, 0));
      },
      {.saves_output = true});
}

// ---- products ----

// Along dim, the product of all elements before each.  The distance doubles in each step.
static Tensor product_of_earlier(const Tensor& x, std::int64_t dim) {
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

// Neither 0 nor subnormal, nor infinite or NaN.
static bool all_normal(const Tensor& x) {
  const double least = x.dtype() == DType::float32 ? double{std::numeric_limits<float>::min()}
                                                   : std::numeric_limits<double>::min();
  return all(abs(x.detach()) >= least) && all(isfinite(x));
}

// The product of all others along dim: y / x if that is in range, and, if `twice`, its derivative's
// terms too.
static Tensor product_of_others(const Tensor& x, const Tensor& y_kept, std::int64_t dim,
                                bool twice) {
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

Tensor prod(const Tensor& x) { return prod(x.dim() == 1 ? x : reshape(x, {-1}), 0, false); }
Tensor prod(const Tensor& x, Dim dim, bool keepdim) {
  const Reduced reduced(x.shape(), dim, "prod");
  return record(
      "prod", {x},
      [reduced, keepdim]<class T>(std::span<const Tensor> in) {
        return reduce<T>(in[0], reduced, reduced.after(keepdim), kernels::prod<T>);
      },
      [saved = Saved(x), reduced, dim](Context& ctx) {
        const Tensor g = as_keepdim(ctx.gradient(), reduced), y = as_keepdim(ctx.output(), reduced);
        const auto add = [&](bool twice) {
          ctx.add(0, g * product_of_others(saved.tensor(), y, dim, twice));
        };
        ops_or_kernel(ctx, [&] { add(true); }, [&]<class T>() { add(false); });
      },
      {.saves_output = true});
}

Tensor prod(const Tensor& x, DType dtype) { return prod(to(x, dtype)); }
Tensor prod(const Tensor& x, Dim dim, bool keepdim, DType dtype) {
  return prod(to(x, dtype), dim, keepdim);
}

// ---- extrema, and ops based on them: logsumexp and norms ----

// Empty rows have no extremum; no rows give an empty result.
static void check_not_empty(const char* op, const Reduced& dims) {
  if (dims.count() == 0 && numel(dims.keepdim_shape()) > 0)
    fail<ShapeError>("{}: x {} has no elements along the reduced dimensions", op,
                     to_string(dims.before()));
}

// g shared evenly among the elements of x that equal y.  NaN equals nothing, so with a NaN all
// shares are NaN, unless nans_too.  The shares are constant.
static Tensor share_evenly(const Tensor& g, const Tensor& x, const Tensor& y, const Dims& dims,
                           bool nans_too) {
  const Mask chosen = nans_too ? (x == y) | (x != x) : x == y;
  const Tensor ones = where(chosen, ones_like(x), 0.0);
  return ones / sum(ones, dims, true) * g;
}

static auto extremum_of(ExtremumKind kind, const Reduced& dims, bool keepdim) {
  return [kind, dims, keepdim]<class T>(std::span<const Tensor> in) {
    return reduce<T>(in[0], dims, dims.after(keepdim),
                     kind.largest ? kernels::max<T> : kernels::min<T>);
  };
}

static Tensor extremum_over(ExtremumKind kind, const Tensor& x, const Dims& dims, bool keepdim,
                            bool nans_too = false) {
  const Reduced reduced(x.shape(), dims, kind.op);
  check_not_empty(kind.op, reduced);
  return record(kind.op, {x}, extremum_of(kind, reduced, keepdim),
                [saved = Saved(x), dims, reduced, nans_too](Context& ctx) {
                  const Tensor g = as_keepdim(ctx.gradient(), reduced),
                               y = as_keepdim(ctx.output(), reduced);
                  ctx.add(0, share_evenly(g, saved.tensor(), y, dims, nans_too));
                },
                {.saves_output = true});
}

static Extremum extremum_at(ExtremumKind kind, const Tensor& x, std::int64_t dim, bool keepdim) {
  const Reduced reduced(x.shape(), dim, kind.op);
  check_not_empty(kind.op, reduced);
  const Indices at = kind.largest ? argmax(x, dim, true) : argmin(x, dim, true);
  Tensor values =
      record(kind.op, {x}, extremum_of(kind, reduced, keepdim), [at, dim, reduced](Context& ctx) {
        const Tensor g = as_keepdim(ctx.gradient(), reduced);
        ctx.add(0, scatter_add(zeros(reduced.before(), g.dtype()), dim, at, g));
      });
  return {std::move(values), reshape(at, reduced.after(keepdim))};
}

Tensor max(const Tensor& x) { return extremum_over({"max", true}, x, {}, false, true); }
Tensor min(const Tensor& x) { return extremum_over({"min", false}, x, {}, false, true); }

Extremum max(const Tensor& x, Dim dim, bool keepdim) {
  return extremum_at({"max", true}, x, dim, keepdim);
}
Extremum min(const Tensor& x, Dim dim, bool keepdim) {
  return extremum_at({"min", false}, x, dim, keepdim);
}

Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) {
  return extremum_over({"amax", true}, x, dims, keepdim);
}
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim) {
  return extremum_over({"amin", false}, x, dims, keepdim);
}

// ---- logsumexp and norms ----

static constexpr double infinity = std::numeric_limits<double>::infinity();

// -inf if all elements are, or n is 0.
template <class T>
static void logsumexp_lines(Axis axis, const T* x, T* y) {
  using V = simd::Batch<T>;
  const V limit(std::numeric_limits<T>::infinity());
  if (axis.n == 0)
    std::fill_n(y, axis.outer * axis.inner, -std::numeric_limits<T>::infinity());
  kernels::for_lines<T>(axis, axis.n, [&](const auto& line) {
    const V max = kernels::largest(line, x);
    const V centre = where(xsimd::abs(max) < limit, max, V(0));  // inf - inf would be NaN
    const V sum = line.sum([&](auto i) { return exp(i.load(x) - centre); });
    line.result(y, log(sum) + centre);
  });
}

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "logsumexp");
  return record(
      "logsumexp", {x},
      [reduced, keepdim]<class T>(std::span<const Tensor> in) {
        return reduce<T>(in[0], reduced, reduced.after(keepdim), logsumexp_lines<T>);
      },
      [saved = Saved(x), reduced](Context& ctx) {
        // a row of only -inf has a gradient of zeros: exp(-inf - 0), not exp(-inf + inf)
        const Tensor y = as_keepdim(ctx.output(), reduced);
        const Tensor finite = masked_fill(y, y == -infinity, 0);
        ctx.add(0, as_keepdim(ctx.gradient(), reduced) * exp(saved.tensor() - finite));
      },
      {.saves_output = true});
}

// If powers leave the range, elements are divided by the dominant one.
template <class T>
static T scaled_norm(std::size_t n, const T* x, double ord) {
  T most = ord > 0 ? T(0) : static_cast<T>(infinity);
  for (std::size_t i = 0; i < n; ++i)
    if (const T v = std::abs(x[i]); std::isnan(v))
      return v;
    else
      most = ord > 0 ? std::max(most, v) : std::min(most, v);
  if (most == 0 || std::isinf(most))
    return most;
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    sum += std::pow(std::abs(static_cast<double>(x[i])) / static_cast<double>(most), ord);
  return static_cast<T>(static_cast<double>(most) * std::pow(sum, 1 / ord));
}

template <class T>
static Array<T> norm(const Tensor& x, double ord, const Reduced& dims, const Shape& shape) {
  if (std::isinf(ord))
    return reduce<T>(abs(x), dims, shape, ord > 0 ? kernels::max<T> : kernels::min<T>);
  if (ord == 0)
    return reduce<T>(where(x == 0.0, zeros_like(x), 1), dims, shape, kernels::sum<T>);
  if (ord == 1)
    return reduce<T>(abs(x), dims, shape, kernels::sum<T>);
  const auto power = [e = static_cast<T>(ord)](T v) { return std::pow(std::abs(v), e); };
  const auto powers = [&](Axis axis, const T* from, T* to) {
    const auto add = [&](const auto& f) { kernels::reduce(axis, from, to, kernels::Add(), f); };
    if (ord == 2)
      add([](const auto& v) { return v * v; });
    else
      add([&](const auto& v) { return kernels::by_lane(power, v); });
  };
  auto y = reduce<T>(x, dims, shape, powers, kernels::sum<T>);
  using Limits = std::numeric_limits<T>;
  const std::size_t n = dims.count();
  Tensor rows;
  for (std::size_t i = 0; i < y.size(); ++i) {
    T& v = y.data()[i];
    if (v >= Limits::min() * static_cast<T>(n) && v <= Limits::max()) {
      // in long double: the error of 1 / ord is multiplied by the number of v's digits
      v = ord == 2 ? std::sqrt(v)
                   : static_cast<T>(
                         std::pow(static_cast<long double>(v), 1 / static_cast<long double>(ord)));
      continue;
    }
    if (!rows.defined())
      rows = rows_of(x, dims);
    v = scaled_norm(n, rows.data<T>() + i * n, ord);
  }
  return y;
}

// The derivative is sign(x) (|x| / y)^(ord - 1), and 0 where x or y is 0.
static Tensor norm_gradient(const Tensor& g, const Tensor& x, const Tensor& y, double ord,
                            const Dims& dims) {
  if (ord == 0)
    return zeros_like(x);
  if (std::isinf(ord))
    return sign(x.detach()) * share_evenly(g, abs(x.detach()), y, dims, true);
  if (ord == 1)
    return sign(x.detach()) * g;
  const Mask flat = y == 0.0;
  const Tensor safe = masked_fill(y, flat, 1);
  if (ord == 2)
    return x * masked_fill(g / safe, flat, 0);
  const Tensor ratio = masked_fill(abs(x) / safe, x == 0.0, 1);  // its powers stay in the range
  return sign(x.detach()) * pow(ratio, ord - 1) * masked_fill(g, flat, 0);
}

Tensor vector_norm(const Tensor& x, double ord, const Dims& dims, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "vector_norm");
  check<ValueError>(!std::isnan(ord), "vector_norm: ord is NaN");
  if (ord < 0 || ord == infinity)
    check_not_empty("vector_norm", reduced);
  return record(
      "vector_norm", {x},
      [reduced, keepdim, ord]<class T>(std::span<const Tensor> in) {
        return norm<T>(in[0], ord, reduced, reduced.after(keepdim));
      },
      [saved = Saved(x), reduced, dims, ord](Context& ctx) {
        const Tensor g = as_keepdim(ctx.gradient(), reduced), y = as_keepdim(ctx.output(), reduced);
        ctx.add(0, norm_gradient(g, saved.tensor(), y, ord, dims));
      },
      {.saves_output = true});
}

Tensor norm(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  return vector_norm(x, p, dims, keepdim);
}

// ---- lengths and distances ----

Tensor normalize(const Tensor& x, const NormalizeOptions& options) {
  return x / clamp(vector_norm(x, options.p, options.dim, true), options.eps, {});
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, Dim dim, double eps) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "cosine_similarity");
  const NormalizeOptions options{.dim = dim, .eps = eps};
  return sum(normalize(expand(a, shape), options) * normalize(expand(b, shape), options), dim);
}

Tensor matrix_norm(const Tensor& x, const Dims& dims, bool keepdim) {
  if (dims.size() != 2)
    fail<ValueError>("matrix_norm: {} given, not two", counted(dims.size(), "dim", "dims"));
  Reduced(x.shape(), dims, "matrix_norm");  // for its errors, which name the op
  return vector_norm(x, 2, dims, keepdim);
}

// ---- running sums ----

// The derivative of a running sum from the front is one from the back.
static Tensor cumsum(const Tensor& x, Axis axis, bool reverse) {
  return record(
      "cumsum", {x},
      [axis, reverse]<class T>(std::span<const Tensor> in) {
        auto y = empty_array<T>(in[0].shape());
        const auto own = [x = in[0].data<T>()](std::size_t i) { return static_cast<double>(x[i]); };
        const auto add = [=](double before, std::size_t i) { return before + own(i); };
        kernels::scan(axis, reverse, y.data(), std::bind_front(add, 0.0), add);
        return y;
      },
      [axis, reverse](Context& ctx) { ctx.add(0, cumsum(ctx.gradient(), axis, !reverse)); });
}

Tensor cumsum(const Tensor& x, Dim dim) {
  return cumsum(x, kernels::axis_of(x.shape(), normalize_dim(dim, x.dim(), "cumsum")), false);
}
Tensor cumsum(const Tensor& x, Dim dim, DType dtype) { return cumsum(to(x, dtype), dim); }

// ---- products ----

// Whether an element is the first along dim, or the last.
static Mask at_end(const Shape& x, std::size_t dim, bool last) {
  Shape shape(x.size(), 1);
  shape[dim] = static_cast<std::size_t>(x[dim]);
  auto mask = empty_array<bool>(shape);
  for (std::size_t i = 0; i < mask.size(); ++i)
    mask.data()[i] = i == (last ? mask.size() - 1 : 0);
  return mask;
}

// y_i = a_i y_(i-1) + b_i along dim, y_0 = b_0, or in reverse from the last; summed in double.  The
// gradient of a is y_(i-1) t_i and that of b is t_i, with t_i = g_i + a_(i+1) t_(i+1): the same
// recurrence from the other end.
static Tensor recurrence(const Tensor& a, const Tensor& b, std::size_t dim, bool reverse) {
  return record(
      "recurrence", {a, b},
      [dim, reverse]<class T>(std::span<const Tensor> in) {
        auto y = empty_array<T>(in[1].shape());
        const auto term = [b = in[1].data<T>()](std::size_t i) {
          return static_cast<double>(b[i]);
        };
        kernels::scan(kernels::axis_of(in[1].shape(), dim), reverse, y.data(), term,
                      [term, a = in[0].data<T>()](double before, std::size_t i) {
                        return static_cast<double>(a[i]) * before + term(i);
                      });
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

Tensor cumprod(const Tensor& x, Dim dim) {
  const std::size_t d = normalize_dim(dim, x.dim(), "cumprod");
  if (x.dim() == 0)
    return clone(x);
  return recurrence(x, where(at_end(x.shape(), d, false), x, 0.0), d, false);
}

}  // namespace xgrad
