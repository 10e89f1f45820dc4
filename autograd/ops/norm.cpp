#include <algorithm>
#include <cmath>
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

namespace {

enum class Norm { layer, rms };

// Shared by the forms of a norm.
struct NormSetup {
  Norm norm;
  std::size_t rank;     // number of normalised dimensions
  std::size_t rows, n;  // n: their elements
  double eps;
  bool centred() const { return norm == Norm::layer && n > 0; }
  std::size_t grain() const {  // rows in one task
    return std::clamp<std::size_t>(8192 / std::max<std::size_t>(n, 1), 8, 128);
  }
};

void check_parameter(const char* op, const char* name, const Tensor& parameter, const Tensor& x,
                     const Shape& normalized) {
  if (!parameter.defined())
    return;
  if (parameter.shape() != normalized)
    fail<ShapeError>("{}: {} has shape {} but normalized_shape is {}", op, name,
                     to_string(parameter.shape()), to_string(normalized));
  detail::check_same_dtype(op, x, name, parameter);
}

Shape check_inputs(const char* op, const Tensor& x, const Dims& normalized_shape,
                   const Tensor& weight, const Tensor& bias) {
  Shape normalized = to_shape(normalized_shape, op);
  const Shape& shape = x.shape();
  check<ShapeError>(!normalized.empty(),
                    "{}: normalized_shape is empty: it needs at least one size", op);
  if (normalized.size() > shape.size() ||
      !std::equal(normalized.begin(), normalized.end(), shape.end() - std::ssize(normalized)))
    fail<ShapeError>("{}: x {} does not end with normalized_shape {}", op, to_string(shape),
                     to_string(normalized));
  check_parameter(op, "weight", weight, x, normalized);
  check_parameter(op, "bias", bias, x, normalized);
  return normalized;
}

// For each row a power of two near its largest element or sqrt(eps); undefined unless the third
// power of a row, which the second derivative contains, leaves the range.
template <class T>
Tensor row_scales(const Tensor& v, const Reduced& rows, double eps) {
  using Limits = std::numeric_limits<T>;
  const ModeGuard unseen({false, nullptr});
  auto scales = reduce<T>(abs(v), rows, rows.keepdim_shape(), kernels::max<T>);
  const double root_of_n = std::sqrt(static_cast<double>(rows.count()));
  const double low = std::cbrt(static_cast<double>(Limits::min())) * root_of_n,
               high = std::cbrt(static_cast<double>(Limits::max())) / root_of_n;
  bool needed = false;
  for (T& s : scales) {
    const double largest = std::max(static_cast<double>(s), std::sqrt(eps));
    const bool in_range = (largest >= low && largest <= high) || largest == 0;
    s = in_range || !std::isfinite(largest) ? T(1)
                                            : static_cast<T>(std::ldexp(1.0, std::ilogb(largest)));
    needed = needed || s != 1;
  }
  return needed ? Tensor(std::move(scales)) : Tensor();
}

// v / sqrt(mean(v^2) + eps) over dims, of v / scale if there is one.  An op of its own, so that its
// gradient rounds as the kernel's: its two terms nearly cancel in rows of one element.  Decompose
// shows its parts.
Tensor over_root(const Tensor& v, const Dims& dims, double eps, const Tensor& scale) {
  const auto inverse_root = [dims, eps, scale = Saved(scale)](const Tensor& u) {
    const Tensor square = mean(pow(u, 2), dims, true);
    if (!scale)
      return rsqrt(square + eps);
    const Tensor s = to(scale.tensor(), u.dtype());
    return rsqrt(square + eps / s / s);
  };
  const Tensor u = scale.defined() ? v / scale : v;
  if (Mode::current().decompose)
    return u * inverse_root(u);
  return record(
      "over_root", {u},
      [inverse_root](std::span<const Tensor> in) { return in[0] * inverse_root(in[0]); },
      [inverse_root, dims, u = Saved(u)](Context& ctx) {
        const Tensor y = ctx.output(), &g = ctx.gradient();
        ctx.add(0, inverse_root(u.tensor()) * (g - y * mean(g * y, dims, true)));
      },
      {.saves_output = true});
}

Tensor over_root(const Tensor& v, const Dims& dims, double eps) {
  const Reduced rows(v.shape(), dims, "rms_norm");
  const auto scales = [&]<class T>() { return row_scales<T>(v, rows, eps); };
  return over_root(v, dims, eps, detail::compute("rms_norm", std::array{v}, scales));
}

// The last mean to be subtracted is 0 but for rounding.  The gradient's is not, and subtracting it
// before the other terms is more precise.
Tensor composed(const NormSetup& setup, std::span<const Tensor> in) {
  Dims last;
  for (std::size_t d = setup.rank; d > 0; --d)
    last.push_back(-static_cast<std::int64_t>(d));
  Tensor y = setup.norm == Norm::layer
                 ? deviations(over_root(deviations(in[0], last), last, setup.eps), last)
                 : over_root(in[0], last, setup.eps);
  if (in[1].defined())
    y = y * in[1];
  return in[2].defined() ? y + in[2] : y;
}

// ---- on registers ----

// (x - mean) r of a row, to the last digit: the mean's rounding error becomes a shift.  For rms
// norm the mean counts as 0.
template <class T>
struct Normalized {
  using V = simd::Batch<T>;
  T mean, r, shift;
  Normalized() = default;
  Normalized(const kernels::Mean<T>& m, double root)
      : mean(m.nearest), r(static_cast<T>(root)), shift(static_cast<T>(-m.rest * root)) {}
  V operator()(const V& x) const { return xsimd::fma(x - V(mean), V(r), V(shift)); }
};

// Rows whose squares leave the range of T.
template <class T>
[[gnu::noinline]] Normalized<T> normalized_by_scaling(const NormSetup& s, const T* x, double eps) {
  const kernels::ScaledMoments row(s.n, x, s.centred());
  const double mean = row.mean * row.scale;
  const double root = row.scale * std::sqrt(row.squares / static_cast<double>(s.n));
  const T nearest = static_cast<T>(mean);
  return {kernels::Mean<T>(nearest, mean - static_cast<double>(nearest) + row.rest * row.scale),
          1 / std::hypot(root, std::sqrt(eps))};
}

template <class T>
Normalized<T> normalized(const NormSetup& s, const T* x) {
  using V = simd::Batch<T>;
  const kernels::Row<T> row(s.n);
  const double one_of_n = 1 / static_cast<double>(s.n);
  const auto eps = static_cast<double>(static_cast<T>(s.eps));
  kernels::Mean<T> mean(0, 0);
  if (s.centred()) {
    const V first(x[0]);
    mean =
        kernels::Mean<T>(x[0], row.sums([&](auto i) { return i.load(x) - first; })[0] * one_of_n);
  }
  const V nearest(mean.nearest);
  const auto [squares] =
      row.sums([&](auto i) { return (i.load(x) - nearest) * (i.load(x) - nearest); });
  const double square = squares * one_of_n - mean.rest * mean.rest + eps;
  using Limits = std::numeric_limits<T>;
  if (square >= double{Limits::min()} && square <= double{Limits::max()})
    return {mean, static_cast<double>(1 / std::sqrt(static_cast<T>(square)))};
  return normalized_by_scaling(s, x, eps);
}

// dx of a row:  r (g w - mean(g w) - h mean(g w h)), for rms norm without the second term.  The
// mean of h is 0, so a constant in g w does not change the third term; both sums omit it.
template <class T>
void input_gradient(const NormSetup& s, const Normalized<T>& h, const T* x, const T* w, const T* g,
                    T* dx) {
  using V = simd::Batch<T>;
  const kernels::Row<T> row(s.n);
  const V first = s.centred() ? V(g[0]) * V(w[0]) : V(0);
  const auto gw = [&](auto i) { return xsimd::fms(i.load(g), i.load(w), first); };
  const auto [sum_g, sum_gh] = row.sums(gw, [&](auto i) { return gw(i) * h(i.load(x)); });
  const double one_of_n = 1 / static_cast<double>(s.n);
  const V along(static_cast<T>(sum_gh * one_of_n));
  if (!s.centred()) {
    row.each([&](auto i) {
      i.store(dx, V(h.r) * xsimd::fms(i.load(g), i.load(w), h(i.load(x)) * along));
    });
    return;
  }
  const kernels::Mean<T> mean(first.get(0), sum_g * one_of_n);
  const V nearest(mean.nearest), rest(static_cast<T>(mean.rest));
  row.each([&](auto i) {
    const V constant_left_out = xsimd::fms(i.load(g), i.load(w), nearest) - rest;
    i.store(dx, V(h.r) * xsimd::fnma(h(i.load(x)), along, constant_left_out));
  });
}

// out = the sums over chunks of n elements, in order.
template <class T>
void add_pieces(const kernels::Scratch<T>& pieces, Array<T>& out) {
  for (std::size_t j = 0; j < out.size(); ++j) {
    double total = 0;
    for (std::size_t at = j; at < pieces.size(); at += out.size())
      total += static_cast<double>(pieces[at]);
    out.data()[j] = static_cast<T>(total);
  }
}

// n elements of weight or bias; `value` if it is absent.
template <class T>
Tensor parameter_or(const Tensor& parameter, std::size_t n, double value) {
  return parameter.defined() ? parameter : full({n}, value, dtype_of<T>);
}

template <class T>
Array<T> normalized_rows(const NormSetup& s, std::span<const Tensor> in) {
  const Tensor weight = parameter_or<T>(in[1], s.n, 1), bias = parameter_or<T>(in[2], s.n, 0);
  const T *const x = in[0].data<T>(), *const w = weight.data<T>(), *const b = bias.data<T>();
  auto result = empty_array<T>(in[0].shape());
  T* const y = result.data();
  const auto moments = [&](std::size_t r) { return normalized(s, x + r * s.n); };
  const auto output = [&](std::size_t r, const Normalized<T>& h) {
    const std::size_t at = r * s.n;
    kernels::Row<T>(s.n).each(
        [&](auto i) { i.store(y + at, xsimd::fma(h(i.load(x + at)), i.load(w), i.load(b))); });
  };
  kernels::parallel_for(s.rows, s.grain(), [&](std::size_t begin, std::size_t end) {
    kernels::for_row_groups(begin, end, moments, output);
  });
  return result;
}

// One pass over x and g for all needed gradients.  The gradients of weight and bias are summed over
// the rows of a task, and then over the tasks.
template <class T>
void norm_backward(const NormSetup& s, Context& ctx, std::span<const Saved> in) {
  const std::size_t n = s.n, grain = s.grain(), pieces = (s.rows + grain - 1) / grain;
  std::array<Array<T>, 3> gradients;
  for (std::size_t i = 0; i < 3; ++i)
    if (ctx.needs(i))
      gradients[i] = empty_array<T>(in[i].value->shape);
  kernels::Scratch<T> dweight(ctx.needs(1) ? pieces * n : 0, T(0));
  kernels::Scratch<T> dbias(ctx.needs(2) ? pieces * n : 0, T(0));
  const Tensor weight = parameter_or<T>(in[1].tensor(), n, 1);
  const T *const x = in[0].value->data<T>(), *const g = ctx.gradient().data<T>();
  const kernels::Row<T> row(n);
  const auto moments = [&](std::size_t r) { return normalized(s, x + r * n); };
  const auto add = [&](std::size_t r, const Normalized<T>& h) {
    const T *const row_x = x + r * n, *const row_g = g + r * n;
    const std::size_t piece = r / grain * n;
    if (ctx.needs(0))
      input_gradient(s, h, row_x, weight.data<T>(), row_g, gradients[0].data() + r * n);
    if (ctx.needs(1)) {
      T* const dw = dweight.data() + piece;
      row.each([&](auto i) { i.store(dw, i.load(dw) + i.load(row_g) * h(i.load(row_x))); });
    }
    if (ctx.needs(2)) {
      T* const db = dbias.data() + piece;
      row.each([&](auto i) { i.store(db, i.load(db) + i.load(row_g)); });
    }
  };
  kernels::parallel_for(s.rows, grain, [&](std::size_t begin, std::size_t end) {
    kernels::for_row_groups(begin, end, moments, add);
  });
  add_pieces(dweight, gradients[1]);
  add_pieces(dbias, gradients[2]);
  for (std::size_t i = 0; i < 3; ++i)
    if (ctx.needs(i))
      ctx.add(i, std::move(gradients[i]));
}

// ---- as ops ----

Tensor normalize(const char* op, Norm norm, const Tensor& x, const Dims& normalized_shape,
                 const Tensor& weight, const Tensor& bias, double eps) {
  const Shape shape = check_inputs(op, x, normalized_shape, weight, bias);
  NormSetup setup{norm, shape.size(), 1, static_cast<std::size_t>(numel(shape)), eps};
  for (std::size_t d = 0; d < x.dim() - shape.size(); ++d)
    setup.rows *= x.shape()[d];
  return fused(
      op, std::array{x, weight, bias},
      [setup](std::span<const Tensor> in) { return composed(setup, in); },
      [setup]<class T>(std::span<const Tensor> in) { return normalized_rows<T>(setup, in); },
      [setup]<class T>(Context& ctx, std::span<const Saved> in) {
        norm_backward<T>(setup, ctx, in);
      });
}

struct Softmax {
  // The maximum of a row of only -inf cannot be subtracted.  Without subtraction its exponentials
  // and their sum are zeros.
  template <class T>
  static void forward(const auto& line, const T* x, T* y) {
    using V = simd::Batch<T>;
    const V max = kernels::largest(line, x);
    const V shift = where(max == V(-std::numeric_limits<T>::infinity()), V(0), max);
    const V factor = line.inverse_sum(kernels::exponentials(x, shift, y));
    line.each([&](auto i) { i.store(y, i.load(y) * factor); });
  }
  static auto gradient_term(const auto& y, const auto& g) { return g * y; }
  static auto gradient(const auto& y, const auto& g, const auto& sum) { return y * (g - sum); }
};

struct LogSoftmax {
  template <class T>
  static void forward(const auto& line, const T* x, T* y) {
    const auto max = kernels::largest(line, x);
    const auto log_sum = log(line.sum([&](auto i) { return exp(i.load(x) - max); }));
    line.each([&](auto i) { i.store(y, i.load(x) - max - log_sum); });
  }
  static auto gradient_term(const auto&, const auto& g) { return g; }
  static auto gradient(const auto& y, const auto& g, const auto& sum) { return g - exp(y) * sum; }
};

}  // namespace

XGRAD_RULE(
    layer_norm, "n ⊙ b + c, n = (a - mean) / std",
    {"(h - mean(h) - n mean(h ⊙ n)) / std, h = g ⊙ b", "Σ g ⊙ n", "Σ g"},
    "A shift or a scale of a row changes nothing, so these two directions are removed from h.");
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  return normalize("layer_norm", Norm::layer, x, normalized_shape, weight, bias, eps);
}

Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  const double epsilon = x.dtype() == DType::float32 ? double{std::numeric_limits<float>::epsilon()}
                                                     : std::numeric_limits<double>::epsilon();
  return normalize("rms_norm", Norm::rms, x, normalized_shape, weight, {}, eps.value_or(epsilon));
}

// An op along lines, from its forward on a line and its derivative, a formula of the output y, the
// gradient g and the sum of a term of both: on registers and on Tensors.  (No fused op: a
// composition would keep x, and these formulas need the output alone.)
template <class Rule>
static Tensor along_lines(const char* op, const Tensor& x, std::int64_t dim) {
  const std::size_t d = normalize_dim(dim, x.dim(), op);
  const auto axis = kernels::axis_of(x.shape(), d);
  const auto forward = [axis]<class T>(std::span<const Tensor> in) {
    auto y = empty_array<T>(in[0].shape());
    kernels::for_lines<T>(axis, axis.n, [from = in[0].data<T>(), to = y.data()](const auto& line) {
      Rule::forward(line, from, to);
    });
    return y;
  };
  const auto backward = [axis, d](Context& ctx) {
    const Tensor output = ctx.output(), &gradient = ctx.gradient();
    ops_or_kernel(
        ctx,
        [&] {
          const Tensor total = sum(Rule::gradient_term(output, gradient), d, true);
          ctx.add(0, Rule::gradient(output, gradient, total));
        },
        [&]<class T>() {
          auto dx = empty_array<T>(output.shape());
          const T *const y = output.data<T>(), *const g = gradient.data<T>();
          kernels::for_lines<T>(axis, axis.n, [&, to = dx.data()](const auto& line) {
            const auto total =
                line.sum([&](auto i) { return Rule::gradient_term(i.load(y), i.load(g)); });
            line.each([&](auto i) { i.store(to, Rule::gradient(i.load(y), i.load(g), total)); });
          });
          ctx.add(0, std::move(dx));
        });
  };
  return record(op, {x}, forward, backward, {.saves_output = true});
}

XGRAD_RULE(softmax, "exp(a) / Σ exp(a)", {"y ⊙ (g - Σ (g ⊙ y))"},
           "Only the difference of g from its weighted mean moves probabilities; the sums of a row "
           "are 0.");
Tensor softmax(const Tensor& x, Dim dim) { return along_lines<Softmax>("softmax", x, dim); }
XGRAD_RULE(log_softmax, "a - log Σ exp(a)", {"g - softmax(a) Σ g"}, "The sums of a row are 0.");
Tensor log_softmax(const Tensor& x, Dim dim) {
  return along_lines<LogSoftmax>("log_softmax", x, dim);
}
Tensor softmax(const Tensor& x, Dim dim, DType dtype) { return softmax(to(x, dtype), dim); }
Tensor log_softmax(const Tensor& x, Dim dim, DType dtype) { return log_softmax(to(x, dtype), dim); }

XGRAD_RULE(dropout, "a ⊙ kept / (1 - p)", {"g ⊙ kept / (1 - p)"},
           "Dropped elements get 0; the others are scaled as in the forward pass.");
Tensor dropout(const Tensor& x, double p, bool training, Generator& generator) {
  check<ValueError>(p >= 0 && p <= 1, "dropout: p {} is not between 0 and 1", p);
  if (!training || p == 0 || x.numel() == 0)
    return x;
  const Saved scales = detail::compute("dropout", std::array{x}, [&]<class T>() {
    auto drawn = empty_array<T>(x.shape());
    fill_dropout(std::span(drawn.data(), drawn.size()), p, generator,
                 x.dim() > 0 ? x.shape().front() : 0);
    return Tensor(std::move(drawn));
  });
  return record(
      "dropout", {x}, [scales](std::span<const Tensor> in) { return mul(in[0], scales.tensor()); },
      [scales](Context& ctx) { ctx.add(0, mul(ctx.gradient(), scales.tensor())); });
}

}  // namespace xgrad
