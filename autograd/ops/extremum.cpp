// Extrema, and what is made with their help: logsumexp and norms.  All gradients here are made of
// catalogue ops.

#include <cmath>
#include <limits>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/reduce.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/ops/reduced.hpp>

namespace xgrad {

using kernels::Axis;

// ---- extrema ----

namespace {

struct ExtremumKind {
  const char* op;
  bool largest;
};

// An extremum of nothing does not exist; of no rows it is an empty result.
void check_not_empty(const char* op, const Reduced& dims) {
  if (dims.count() == 0 && numel(dims.kept()) > 0)
    fail<ShapeError>("{}: x {} has no elements along the reduced dimensions", op,
                     to_string(dims.before()));
}

// g shared evenly among the elements of x that are y.  A NaN equals none, and all shares are NaN,
// unless each NaN is to count as y.  The shares are constant.
Tensor share_evenly(const Tensor& g, const Tensor& x, const Tensor& y, const Dims& dims,
                    bool nans_too) {
  const Mask chosen = nans_too ? (x == y) | (x != x) : x == y;
  const Tensor ones = where(chosen, ones_like(x), 0.0);
  return ones / sum(ones, dims, true) * g;
}

auto extremum_of(ExtremumKind kind, const Reduced& dims, bool keepdim) {
  return [kind, dims, keepdim]<class T>(std::span<const Tensor> in) {
    return reduce<T>(in[0], dims, dims.after(keepdim),
                     kind.largest ? kernels::max<T> : kernels::min<T>);
  };
}

Tensor extremum_over(ExtremumKind kind, const Tensor& x, const Dims& dims, bool keepdim,
                     bool nans_too = false) {
  const Reduced reduced(x.shape(), dims, kind.op);
  check_not_empty(kind.op, reduced);
  return record(kind.op, {x}, extremum_of(kind, reduced, keepdim),
                [saved = Saved(x), dims, reduced, nans_too](Context& ctx) {
                  const Tensor g = kept(ctx.gradient(), reduced), y = kept(ctx.output(), reduced);
                  ctx.add(0, share_evenly(g, saved.tensor(), y, dims, nans_too));
                },
                {.saves_output = true});
}

Extremum extremum_at(ExtremumKind kind, const Tensor& x, std::int64_t dim, bool keepdim) {
  const Reduced reduced(x.shape(), dim, kind.op);
  check_not_empty(kind.op, reduced);
  const Indices at = kind.largest ? argmax(x, dim, true) : argmin(x, dim, true);
  Tensor values =
      record(kind.op, {x}, extremum_of(kind, reduced, keepdim), [at, dim, reduced](Context& ctx) {
        const Tensor g = kept(ctx.gradient(), reduced);
        ctx.add(0, scatter_add(zeros(reduced.before(), g.dtype()), dim, at, g));
      });
  return {std::move(values), reshape(at, reduced.after(keepdim))};
}

}  // namespace

Tensor max(const Tensor& x) { return extremum_over({"max", true}, x, {}, false, true); }
Tensor min(const Tensor& x) { return extremum_over({"min", false}, x, {}, false, true); }

Extremum max(const Tensor& x, std::int64_t dim, bool keepdim) {
  return extremum_at({"max", true}, x, dim, keepdim);
}
Extremum min(const Tensor& x, std::int64_t dim, bool keepdim) {
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

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  const Reduced reduced(x.shape(), dims, "logsumexp");
  return record(
      "logsumexp", {x},
      [reduced, keepdim]<class T>(std::span<const Tensor> in) {
        return reduce<T>(in[0], reduced, reduced.after(keepdim), kernels::logsumexp<T>);
      },
      [saved = Saved(x), reduced](Context& ctx) {
        // a row of only -inf has a gradient of zeros: exp(-inf - 0), and not exp(-inf + inf)
        const Tensor y = kept(ctx.output(), reduced);
        const Tensor finite = masked_fill(y, y == -infinity, 0);
        ctx.add(0, kept(ctx.gradient(), reduced) * exp(saved.tensor() - finite));
      },
      {.saves_output = true});
}

namespace {

// Where powers leave the range: of elements divided by the one that weighs most.
template <class T>
T scaled_norm(std::size_t n, const T* x, double ord) {
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
Array<T> norm(const Tensor& x, double ord, const Reduced& dims, const Shape& shape) {
  if (std::isinf(ord))
    return reduce<T>(abs(x), dims, shape, ord > 0 ? kernels::max<T> : kernels::min<T>);
  if (ord == 0)
    return reduce<T>(where(x == 0.0, zeros_like(x), 1), dims, shape, kernels::sum<T>);
  if (ord == 1)
    return reduce<T>(abs(x), dims, shape, kernels::sum<T>);
  const auto powers = [ord](Axis axis, const T* from, T* to) {
    ord == 2 ? kernels::sum_squares(axis, from, to) : kernels::sum_powers(axis, from, ord, to);
  };
  auto y = reduce<T>(x, dims, shape, powers, kernels::sum<T>);
  using Limits = std::numeric_limits<T>;
  const std::size_t n = dims.count();
  Tensor rows;
  for (std::size_t i = 0; i < y.size(); ++i) {
    T& v = y.data()[i];
    if (v >= Limits::min() * static_cast<T>(n) && v <= Limits::max()) {
      // in long double: the error of 1 / ord counts as often as v has digits
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
Tensor norm_gradient(const Tensor& g, const Tensor& x, const Tensor& y, double ord,
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

}  // namespace

Tensor vector_norm(const Tensor& x, double ord) { return vector_norm(x, ord, {}); }

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
        const Tensor g = kept(ctx.gradient(), reduced), y = kept(ctx.output(), reduced);
        ctx.add(0, norm_gradient(g, saved.tensor(), y, ord, dims));
      },
      {.saves_output = true});
}

Tensor norm(const Tensor& x, double p) { return vector_norm(x, p); }
Tensor norm(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  return vector_norm(x, p, dims, keepdim);
}

// ---- lengths and distances ----

Tensor normalize(const Tensor& x, const NormalizeOptions& options) {
  return x / clamp(vector_norm(x, options.p, options.dim, true), options.eps, {});
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim, double eps) {
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

}  // namespace xgrad
