// Losses: cross_entropy and nll_loss, of class ids and of probabilities; then compositions of ops.
//
// x is (V) or (N, V, d1, ...) with V classes, and target (), or (N, d1, ...).

#include <algorithm>
#include <array>
#include <numeric>
#include "../engine.hpp"
#include "../fail.hpp"
#include "../fused.hpp"
#include "../kernels/lines.hpp"
#include "../ops.hpp"
#include "../random.hpp"
#include "elementwise.hpp"
#include "rules.hpp"

namespace xgrad::targets {

/// The dimension of x's classes.  ShapeError if x is 0-d.
std::size_t class_dim(const char* op, const Tensor& x) {
  check<ShapeError>(x.dim() > 0, "{}: x is 0-d: it needs a dimension of classes", op);
  return x.dim() == 1 ? 0 : 1;
}

/// ShapeError or DTypeError unless weight is undefined or has one number of x's dtype for each
/// class; GraphError if it requires a gradient.
void check_weight(const char* op, const Tensor& weight, const Tensor& x) {
  if (!weight.defined())
    return;
  const std::size_t classes = x.shape()[class_dim(op, x)];
  if (weight.shape() != Shape{classes})
    fail<ShapeError>("{}: weight has shape {} but x {} has {} classes", op,
                     to_string(weight.shape()), to_string(x.shape()), classes);
  detail::check_same_dtype(op, x, "weight", weight);
  check<GraphError>(!detail::any_requires_grad(std::array{weight}),
                    "{}: weight requires a gradient, but there is none for it: pass "
                    "weight.detach()",
                    op);
}

/// ShapeError if the shapes do not fit, ValueError if an id is neither a class nor `ignored`.
void check_ids(const char* op, const Tensor& x, const Indices& target, std::int64_t ignored) {
  const std::size_t dim = class_dim(op, x);
  const auto classes = static_cast<std::int64_t>(x.shape()[dim]);
  Shape expected;
  for (std::size_t d = 0; d < x.shape().size(); ++d)
    if (d != dim)
      expected.push_back(x.shape()[d]);
  if (target.shape() != expected)
    fail<ShapeError>("{}: x {} takes targets of shape {}, not {}", op, to_string(x.shape()),
                     to_string(expected), to_string(target.shape()));
  for (Size i = 0; i < target.numel(); ++i)
    if (const std::int64_t id = target.data()[i]; id != ignored && (id < 0 || id >= classes)) {
      const auto at = position(expected, i);
      fail<ValueError>("{}: target {} at {} is not one of {} classes, nor ignore_index {}", op, id,
                       to_string(Shape(at.begin(), at.end())), classes, ignored);
    }
}

/// The targets and their weights, as formulas capture them.
struct Wanted {
  Indices ids;  ///< the targets, 0 where ignored
  Mask ignore;  ///< the ignored targets
  bool any_ignored;
  Saved weights;           ///< the weight of each target: its class's or 1; 0 if ignored
  double total;            ///< of the weights: the mean's divisor
  double gradient_factor;  ///< 1 / total, or 0 if all targets are ignored: then the mean is NaN

  Wanted(const Tensor& x, const Indices& target, const Tensor& class_weight, std::int64_t ignored) {
    const ModeGuard unseen({false, nullptr});
    ignore = target == ignored;
    any_ignored = ignore.any();
    if (any_ignored || class_weight.defined())
      detail::check_draws();  // shards would be averaged by rows, whatever their divisor is
    ids = where(ignore, 0, target);
    const Tensor all = class_weight.defined()
                           ? reshape(index_select(class_weight, 0, ids.flatten()), ids.shape())
                           : ones(ids.shape(), x.dtype());
    const Tensor each = masked_fill(all, ignore, 0);
    weights = each;
    const Tensor wide = to(each, DType::float64);
    total = std::accumulate(wide.data<double>(), wide.data<double>() + wide.numel(), 0.0);
    gradient_factor = ignore.all() ? 0 : 1 / total;
  }
};

/// Makes the batch run whole (detail::check_draws()) if a shard's loss is a sum.
void check_shard(Reduction reduction) {
  if (reduction == Reduction::sum)
    detail::check_draws();
}

/// Reduces the losses of single targets; a kernel's are summed in double.
template <class T>
Tensor reduced(Array<T> losses, Reduction reduction, double divisor) {
  check_shard(reduction);
  if (reduction == Reduction::none)
    return Tensor(std::move(losses));
  const double sum = std::accumulate(losses.data(), losses.data() + losses.size(), 0.0);
  return scalar(reduction == Reduction::mean ? sum / divisor : sum, dtype_of<T>);
}

Tensor reduced(const Tensor& losses, Reduction reduction, double divisor) {
  check_shard(reduction);
  if (reduction == Reduction::none)
    return losses;
  // (sum() would count as a loss that cannot be averaged over shards)
  return reduction == Reduction::mean ? sum_to(losses, {}) / divisor : sum(losses);
}

}  // namespace xgrad::targets

namespace xgrad {

namespace {

// The options, in a form that formulas may capture.
struct SavedOptions {
  Saved weight;
  std::int64_t ignore_index;
  Reduction reduction;
  double label_smoothing;
  explicit SavedOptions(const CrossEntropyOptions& o)
      : weight(o.weight),
        ignore_index(o.ignore_index),
        reduction(o.reduction),
        label_smoothing(o.label_smoothing) {}
  // An observer may run a forward in another dtype.
  Tensor weight_as(DType dtype) const { return weight ? to(weight.tensor(), dtype) : Tensor(); }
};

void check_smoothing(double smoothing) {
  check<ValueError>(smoothing >= 0 && smoothing <= 1,
                    "cross_entropy: label_smoothing {} is not between 0 and 1", smoothing);
}

// (N, V, d1, ...) -> (N, d1, ..., V): kernels need contiguous classes.
Tensor classes_last(const Tensor& x) {
  if (x.dim() <= 2)
    return x;
  Dims order;
  for (Size d = 0; d < x.dim(); ++d)
    if (d != 1)
      order.push_back(static_cast<std::int64_t>(d));
  order.push_back(1);
  return permute(x, order);
}

Shape without_last(const Shape& shape) { return Shape(shape.begin(), shape.end() - 1); }

// ---- on registers ----
//
// The loss of a row is sum_c q_c (-log p_c), p = softmax(x):  dx = (p sum(q) - q) g.  The backward
// computes p again, which costs less than keeping it.

// Rows of logits.  q_c = weight_c (share target_c + smooth); the target is a probability for each
// class, or 1 for one class and 0 for the others.
template <class T>
struct Logits {
  Tensor weights;
  std::size_t rows, n;
  const T *x, *weight;
  T share, smooth;
  kernels::Row<T> row;
  Logits(const Tensor& logits, const SavedOptions& options)
      : weights(options.weight ? options.weight_as(dtype_of<T>)
                               : ones({logits.size(-1)}, dtype_of<T>)),
        rows(static_cast<std::size_t>(numel(without_last(logits.shape())))),
        n(logits.size(-1)),
        x(logits.data<T>()),
        weight(weights.data<T>()),
        share(1 - static_cast<T>(options.label_smoothing)),
        smooth(static_cast<T>(options.label_smoothing) / static_cast<T>(n)),
        row(n) {}

  // An array of this shape; f(r, x, y) fills the part y of each row r.
  Array<T> for_each_row(const Shape& shape, const auto& f) const {
    auto result = empty_array<T>(shape);
    const std::size_t step = result.size() / std::max<std::size_t>(1, rows);
    kernels::for_rows(rows, n, [&](std::size_t r) { f(r, x + r * n, result.data() + r * step); });
    return result;
  }
};

// -log p, in an order that is exact to rounding where p is near 1.
template <class T>
simd::Batch<T> minus_log(const kernels::LogSum<T>& sum, const simd::Batch<T>& x) {
  return (sum.max - x) + sum.log_sum;
}

// The gradient of each row's loss, by row.
template <class T>
auto row_gradients(const Tensor& g, Reduction reduction, double mean_factor) {
  const T factor = reduction == Reduction::mean ? static_cast<T>(mean_factor) : T(1);
  return [g = g.data<T>(), each = reduction == Reduction::none, factor](std::size_t r) {
    return (each ? g[r] : *g) * factor;
  };
}

template <class T>
Array<T> row_losses(const Tensor& logits, const Indices& target, const SavedOptions& options) {
  const Logits<T> in(logits, options);
  return in.for_each_row(target.shape(), [&](std::size_t r, const T* x, T* loss) {
    const std::int64_t id = target.data()[r];
    *loss = 0;
    if (id == options.ignore_index)
      return;
    const kernels::LogSum<T> sum(in.row, x);
    *loss = in.share * in.weight[id] * minus_log<T>(sum, x[id]).get(0);
    const auto all = [&](auto i) { return i.load(in.weight) * minus_log(sum, i.load(x)); };
    if (options.label_smoothing != 0)
      *loss += in.smooth * in.row.sum(all).get(0);
  });
}

template <class T>
Array<T> logits_gradient(const Tensor& logits, const Indices& target, const SavedOptions& options,
                         const auto& g) {
  using V = simd::Batch<T>;
  const Logits<T> in(logits, options);
  T smooth_sum = static_cast<T>(options.label_smoothing);
  if (options.weight)
    smooth_sum = in.smooth * in.row.sum([&](auto i) { return i.load(in.weight); }).get(0);
  return in.for_each_row(logits.shape(), [&](std::size_t r, const T* x, T* dx) {
    const std::int64_t id = target.data()[r];
    if (id == options.ignore_index) {
      std::fill_n(dx, in.n, T(0));
      return;
    }
    const V max = kernels::largest(in.row, x);
    const T sum = in.row.sum(kernels::exponentials(x, max, dx)).get(0);
    const T at_target = in.share * in.weight[id], gradient = g(r);
    const V scale((at_target + smooth_sum) * gradient / sum), others(in.smooth * gradient);
    if (options.label_smoothing == 0)  // avoids 0 times an infinite gradient, NaN
      in.row.each([&](auto i) { i.store(dx, i.load(dx) * scale); });
    else
      in.row.each([&](auto i) { i.store(dx, i.load(dx) * scale - i.load(in.weight) * others); });
    dx[id] -= at_target * gradient;
  });
}

// q of a row of target probabilities t, with weights and smoothing.
template <class T>
auto wanted_of(const Logits<T>& in, const T* t) {
  return [&in, t, share = simd::Batch<T>(in.share), smooth = simd::Batch<T>(in.smooth)](auto i) {
    return i.load(in.weight) * (i.load(t) * share + smooth);
  };
}

template <class T>
Array<T> row_losses(const Tensor& logits, const Tensor& target, const SavedOptions& options) {
  const Logits<T> in(logits, options);
  return in.for_each_row(without_last(logits.shape()), [&](std::size_t r, const T* x, T* loss) {
    const auto q = wanted_of(in, target.data<T>() + r * in.n);
    const kernels::LogSum<T> sum(in.row, x);
    *loss = in.row.sum([&](auto i) { return q(i) * minus_log(sum, i.load(x)); }).get(0);
  });
}

template <class T>
Array<T> logits_gradient(const Tensor& logits, const Tensor& target, const SavedOptions& options,
                         const auto& g) {
  using V = simd::Batch<T>;
  const Logits<T> in(logits, options);
  return in.for_each_row(logits.shape(), [&](std::size_t r, const T* x, T* dx) {
    const auto q = wanted_of(in, target.data<T>() + r * in.n);
    const V max = kernels::largest(in.row, x);
    const V sum = in.row.sum(kernels::exponentials(x, max, dx));
    const V scale = in.row.sum(q) / sum, gradient(g(r));
    in.row.each([&](auto i) { i.store(dx, (i.load(dx) * scale - q(i)) * gradient); });
  });
}

// dtarget = -(1 - e) weight log p g.
template <class T>
Array<T> target_gradient(const Tensor& logits, const SavedOptions& options, const auto& g) {
  using V = simd::Batch<T>;
  const Logits<T> in(logits, options);
  return in.for_each_row(logits.shape(), [&](std::size_t r, const T* x, T* dt) {
    const kernels::LogSum<T> sum(in.row, x);
    const V share(in.share), gradient(g(r));
    in.row.each([&](auto i) {
      i.store(dt, share * i.load(in.weight) * minus_log(sum, i.load(x)) * gradient);
    });
  });
}

// ---- as ops ----

// Class ids.
Tensor composed(const Tensor& x, const Indices& target, const targets::Wanted& wanted,
                const SavedOptions& options) {
  // (R, V) and (R); ignored rows have no gradient, even if they hold NaN
  const Shape rows{target.numel()};
  Tensor logits = x.dim() == 2 ? x : reshape(x, {rows[0], x.size(-1)});
  const Mask ignore = wanted.ignore.reshape({rows[0], 1});
  if (wanted.any_ignored)
    logits = masked_fill(logits, ignore, 0);
  const Tensor log_p = log_softmax(logits, -1), weight = options.weight_as(x.dtype());
  NllLossOptions of_nll{weight, options.ignore_index, options.reduction};
  const Indices ids = target.flatten();
  if (options.label_smoothing == 0) {
    const Tensor y = nll_loss(log_p, ids, of_nll);
    return y.dim() == 0 ? y : reshape(y, target.shape());
  }
  of_nll.reduction = Reduction::none;
  const double smooth =
      options.label_smoothing / static_cast<double>(std::max<Size>(1, x.size(-1)));
  const Tensor all = masked_fill(weight.defined() ? log_p * weight : log_p, ignore, 0);
  const Tensor losses =
      nll_loss(log_p, ids, of_nll) * (1 - options.label_smoothing) - sum(all, -1) * smooth;
  return targets::reduced(reshape(losses, target.shape()), options.reduction, wanted.total);
}

// x (..., V): q is a constant.
Tensor of_ids(const Tensor& input, const Indices& target, const SavedOptions& options) {
  const targets::Wanted wanted(input, target, options.weight.tensor(), options.ignore_index);
  return fused(
      "cross_entropy", std::array{input},
      [=](std::span<const Tensor> in) { return composed(in[0], target, wanted, options); },
      [target, options, total = wanted.total]<class T>(std::span<const Tensor> in) {
        return targets::reduced(row_losses<T>(in[0], target, options), options.reduction, total);
      },
      [target, options, factor = wanted.gradient_factor]<class T>(Context& ctx,
                                                                  std::span<const Saved> in) {
        const auto g = row_gradients<T>(ctx.gradient(), options.reduction, factor);
        ctx.add(0, logits_gradient<T>(in[0].tensor(), target, options, g));
      });
}

// Probabilities, x and target (..., V).
Tensor of_probabilities(const Tensor& input, const Tensor& probabilities,
                        const SavedOptions& options) {
  const auto count = static_cast<double>(numel(without_last(input.shape())));
  return fused(
      "cross_entropy", std::array{input, probabilities},
      [options, count](std::span<const Tensor> in) {
        const double e = options.label_smoothing;
        Tensor q = in[1];
        if (e != 0)
          q = q * (1 - e) + e / static_cast<double>(q.size(-1));
        if (options.weight)
          q = q * options.weight_as(q.dtype());
        return targets::reduced(-sum(q * log_softmax(in[0], -1), -1), options.reduction, count);
      },
      [options, count]<class T>(std::span<const Tensor> in) {
        return targets::reduced(row_losses<T>(in[0], in[1], options), options.reduction, count);
      },
      [options, count]<class T>(Context& ctx, std::span<const Saved> in) {
        const Tensor x = in[0].tensor();
        const double factor = 1 / std::max(count, 1.0);
        const auto g = row_gradients<T>(ctx.gradient(), options.reduction, factor);
        if (ctx.needs(0))
          ctx.add(0, logits_gradient<T>(x, in[1].tensor(), options, g));
        if (ctx.needs(1))
          ctx.add(1, target_gradient<T>(x, options, g));
      });
}

}  // namespace

XGRAD_RULE(cross_entropy, "-log softmax(a)[target], the mean",
           {"g (softmax(a) - one-hot(target)) / N", "-g log softmax(a) / N"},
           "Probability minus truth, for each of the N targets (times weights, if given).");
Tensor cross_entropy(const Tensor& x, const Indices& target, const CrossEntropyOptions& options) {
  check_smoothing(options.label_smoothing);
  targets::check_ids("cross_entropy", x, target, options.ignore_index);
  targets::check_weight("cross_entropy", options.weight, x);
  return of_ids(classes_last(x), target, SavedOptions(options));
}

Tensor cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyOptions& options) {
  check_smoothing(options.label_smoothing);
  targets::class_dim("cross_entropy", x);
  targets::check_weight("cross_entropy", options.weight, x);
  if (x.shape() != target.shape())
    fail<ShapeError>("cross_entropy: x {} and target probabilities {} must have the same shape",
                     to_string(x.shape()), to_string(target.shape()));
  detail::check_same_dtype("cross_entropy", x, "target", target);
  check<ValueError>(options.ignore_index < 0,
                    "cross_entropy: ignore_index {} has no meaning for target probabilities",
                    options.ignore_index);
  return of_probabilities(classes_last(x), classes_last(target), SavedOptions(options));
}

// y_r = -weight_t log_p_rt, t = target_r:  d log_p = -weight_t g_r at t, 0 elsewhere, even if g_r
// is NaN and weight_t 0
Tensor nll_loss(const Tensor& log_p, const Indices& target, const NllLossOptions& options) {
  targets::check_ids("nll_loss", log_p, target, options.ignore_index);
  targets::check_weight("nll_loss", options.weight, log_p);
  const std::size_t dim = targets::class_dim("nll_loss", log_p);
  const targets::Wanted wanted(log_p, target, options.weight, options.ignore_index);
  const Reduction reduction = options.reduction;
  return record(
      "nll_loss", {log_p},
      [wanted, reduction, dim]<class T>(std::span<const Tensor> in) {
        const kernels::Axis axis = kernels::axis_of(in[0].shape(), dim);
        const Tensor weights = to(wanted.weights.tensor(), dtype_of<T>);  // of any dtype
        auto losses = empty_array<T>(wanted.ids.shape());
        for (std::size_t r = 0; r < losses.size(); ++r) {
          const auto id = static_cast<std::size_t>(wanted.ids.data()[r]);
          const std::size_t row = r / axis.inner * axis.n + id;
          losses.data()[r] =
              wanted.ignore.data()[r]
                  ? T(0)
                  : -weights.data<T>()[r] * in[0].data<T>()[row * axis.inner + r % axis.inner];
        }
        return targets::reduced(std::move(losses), reduction, wanted.total);
      },
      [wanted, reduction, dim, shape = log_p.shape()](Context& ctx) {
        const Tensor& g = ctx.gradient();
        if (numel(shape) == 0)  // without classes all targets are ignored
          return ctx.add(0, zeros(shape, g.dtype()));
        const Tensor row_g = reduction == Reduction::mean ? g * wanted.gradient_factor : g;
        const Tensor w = wanted.weights.tensor(), at = where(w != 0.0, w * row_g, 0.0);
        const auto d = static_cast<std::int64_t>(dim);  // the classes'
        ctx.add(0,
                -scatter_add(zeros(shape, g.dtype()), d, wanted.ids.unsqueeze(d), at.unsqueeze(d)));
      });
}

static void check_alike(const char* op, const Tensor& x, const Tensor& target) {
  if (x.shape() != target.shape())
    fail<ShapeError>(
        "{}: x {} and target {} must have the same shape; to broadcast, write "
        "expand()",
        op, to_string(x.shape()), to_string(target.shape()));
  detail::check_same_dtype(op, x, "target", target);
}

// sum((a - b)^2) of n elements.
template <class T>
static double squared_error(std::size_t n, const T* a, const T* b) {
  constexpr std::size_t piece = 16384;
  std::vector<double> sums((n + piece - 1) / piece);
  kernels::for_rows(sums.size(), piece, [&](std::size_t k) {
    const kernels::Row<T> row(std::min(piece, n - k * piece), k * piece);
    const auto error = [&](auto i) { return i.load(a) - i.load(b); };
    sums[k] = row.sums([&](auto i) { return error(i) * error(i); })[0];
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

XGRAD_RULE(mse_loss, "mean (a - b)²", {"2 g (a - b) / N", "-2 g (a - b) / N"},
           "Twice the error; N is 1 unless the mean is taken.");
// y = (x - target)^2:  dx = 2 (x - target) g = -dtarget
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_alike("mse_loss", x, target);
  targets::check_shard(reduction);
  return record(
      "mse_loss", {x, target},
      [reduction]<class T>(std::span<const Tensor> in) {
        const T *const a = in[0].data<T>(), *const b = in[1].data<T>();
        const std::size_t n = in[0].numel();
        if (reduction == Reduction::none)
          return pow(in[0] - in[1], 2);
        const double sum = squared_error(n, a, b);
        return scalar(reduction == Reduction::mean ? sum / static_cast<double>(n) : sum,
                      dtype_of<T>);
      },
      [reduction, a = Saved(x), b = Saved(target)](Context& ctx) {
        const auto n = static_cast<double>(std::max<std::size_t>(1, numel(a.value->shape)));
        const Tensor g = ctx.gradient() * (reduction == Reduction::mean ? 2 / n : 2);
        const Tensor dx = (a.tensor() - b.tensor()) * g;
        ctx.add(0, dx);
        if (ctx.needs(1))
          ctx.add(1, -dx);
      });
}

// ---- compositions ----

static Tensor over_all(const Tensor& losses, Reduction reduction) {
  targets::check_shard(reduction);
  return reduction == Reduction::mean  ? mean(losses)
         : reduction == Reduction::sum ? sum(losses)
                                       : losses;
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_alike("l1_loss", x, target);
  return over_all(abs(x - target), reduction);
}

// d clamped to +-delta is d within and +-delta beyond, so one formula serves both branches.
static Tensor huber(const Tensor& d, double delta, double divisor) {
  const Tensor limited = clamp(d, -delta, delta);
  return limited / divisor * (d - 0.5 * limited);
}

Tensor huber_loss(const Tensor& x, const Tensor& target, const HuberLossOptions& options) {
  const auto [reduction, delta] = options;
  check_alike("huber_loss", x, target);
  check<ValueError>(delta > 0, "huber_loss: delta is {} but must be positive", delta);
  return over_all(huber(x - target, delta, 1), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, const SmoothL1LossOptions& options) {
  const auto [reduction, beta] = options;
  check_alike("smooth_l1_loss", x, target);
  check<ValueError>(beta >= 0, "smooth_l1_loss: beta is {} but must not be negative", beta);
  const bool none = x.dtype() == DType::float32 ? static_cast<float>(beta) == 0 : beta == 0;
  return none ? l1_loss(x, target, reduction) : over_all(huber(x - target, beta, beta), reduction);
}

Tensor kl_div(const Tensor& x, const Tensor& target, const KLDivLossOptions& options) {
  const auto [reduction, log_target] = options;
  check_alike("kl_div", x, target);
  return over_all(log_target ? exp(target) * (target - x)
                             : target * (log(masked_fill(target, target == 0.0, 1)) - x),
                  reduction);
}

// ---- binary cross-entropy ----

static Tensor weighted(const Tensor& losses, const BinaryCrossEntropyOptions& options) {
  const Tensor& w = options.weight;
  return over_all(w.defined() ? losses * expand(w, losses.shape()) : losses, options.reduction);
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target,
                            const BinaryCrossEntropyOptions& options) {
  using enum Uses;
  check_alike("binary_cross_entropy", x, target);
  check<ValueError>(!options.pos_weight.defined(),
                    "binary_cross_entropy: pos_weight is for binary_cross_entropy_with_logits");
  check<ValueError>(all((x >= 0.0) & (x <= 1.0)),
                    "binary_cross_entropy: x has an element that is not in [0, 1]; for logits use "
                    "binary_cross_entropy_with_logits");
  check<ValueError>(all((target >= 0.0) & (target <= 1.0)),
                    "binary_cross_entropy: target has an element that is not in [0, 1]");
  return weighted(elementwise(
                      "binary_cross_entropy", x, target,
                      [](const auto& p, const auto& t) {
                        const auto least = c(p, -100);
                        return (t - c(t, 1)) * maximum(log1p(-p), least) -
                               t * maximum(log(p), least);
                      },
                      partial<A, B>([](const auto& g, const auto& p, const auto& t) {
                        return g * ((p - t) / maximum((c(p, 1) - p) * p, c(p, double{1e-12F})));
                      }),
                      partial<A>([](const auto& g, const auto& p) {
                        return g * (maximum(log1p(-p), c(p, -100)) - maximum(log(p), c(p, -100)));
                      })),
                  options);
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        const BinaryCrossEntropyOptions& options) {
  check_alike("binary_cross_entropy_with_logits", x, target);
  Tensor positive = target;
  if (options.pos_weight.defined())
    positive = target * expand(options.pos_weight, x.shape());
  // (1 - target) x - log p would have a gradient that cancels where x is far below 0.
  return weighted((target - 1.0) * logsigmoid(-x) - positive * logsigmoid(x), options);
}

}  // namespace xgrad
