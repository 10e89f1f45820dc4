// Losses: cross_entropy and nll_loss, of class ids and of probabilities; then compositions of ops.
//
// x is (V) or (N, V, d1, ...) with V classes, and target (), or (N, d1, ...).

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include "../engine.hpp"
#include "../fail.hpp"
#include "../fused.hpp"
#include "../kernels/lines.hpp"
#include "../ops.hpp"
#include "../random.hpp"
#include "../update_formula.hpp"
#include "elementwise.hpp"
#include "matmul.hpp"
#include "rules.hpp"

namespace xgrad::targets {

/// The dimension of the classes in x's shape.  ShapeError if x is 0-d.
std::size_t class_dim(const char* op, const Shape& x) {
  check<ShapeError>(!x.empty(), "{}: x is 0-d: it needs a dimension of classes", op);
  return x.size() == 1 ? 0 : 1;
}

/// ShapeError or DTypeError unless weight is undefined or has one number of x's dtype for each
/// class; GraphError if it requires a gradient.
void check_weight(const char* op, const Tensor& weight, const Tensor& x, std::size_t classes) {
  if (!weight.defined())
    return;
  if (weight.shape() != Shape{classes})
    fail<ShapeError>("{}: weight has shape {} but there are {} classes", op,
                     to_string(weight.shape()), classes);
  detail::check_same_dtype(op, x, "weight", weight);
  check<GraphError>(!detail::any_requires_grad(std::array{weight}),
                    "{}: weight requires a gradient, but there is none for it: pass "
                    "weight.detach()",
                    op);
}

/// ShapeError if the shapes do not fit, ValueError if an id is neither a class nor `ignored`.
/// Returns the number of classes.
std::size_t check_ids(const char* op, const char* name, const Shape& x, const Indices& target,
                      std::int64_t ignored) {
  const std::size_t dim = class_dim(op, x);
  const auto classes = static_cast<std::int64_t>(x[dim]);
  Shape expected;
  for (std::size_t d = 0; d < x.size(); ++d)
    if (d != dim)
      expected.push_back(x[d]);
  if (target.shape() != expected)
    fail<ShapeError>("{}: {} {} takes targets of shape {}, not {}", op, name, to_string(x),
                     to_string(expected), to_string(target.shape()));
  for (Size i = 0; i < target.numel(); ++i)
    if (const std::int64_t id = target.data()[i]; id != ignored && (id < 0 || id >= classes)) {
      const auto at = position(expected, i);
      fail<ValueError>("{}: target {} at {} is not one of {} classes, nor ignore_index {}", op, id,
                       to_string(Shape(at.begin(), at.end())), classes, ignored);
    }
  return x[dim];
}

/// The targets and their weights, as formulas capture them.
struct Wanted {
  Indices ids;  ///< the targets, 0 where ignored
  Mask ignore;  ///< the ignored targets
  bool any_ignored;
  Saved weights;           ///< the weight of each target: its class's or 1; 0 if ignored
  double total;            ///< of the weights: the mean's divisor
  double gradient_factor;  ///< for a mean: 1 / total, or 0 if all are ignored: then it is NaN

  template <class Options>
  Wanted(const Tensor& x, const Indices& target, const Options& options) {
    const Tensor& class_weight = options.weight;
    const ModeGuard unseen({false, nullptr});
    ignore = target == options.ignore_index;
    any_ignored = ignore.any();
    if (any_ignored || class_weight.defined() || options.reduction == Reduction::sum)
      detail::check_draws();  // shards would be averaged by rows, whatever their divisor is
    ids = where(ignore, 0, target);
    const Tensor all = class_weight.defined()
                           ? reshape(index_select(class_weight, 0, ids.flatten()), ids.shape())
                           : ones(ids.shape(), x.dtype());
    const Tensor each = masked_fill(all, ignore, 0);
    weights = each;
    const Tensor wide = to(each, DType::float64);
    total = std::accumulate(wide.data<double>(), wide.data<double>() + wide.numel(), 0.0);
    gradient_factor = options.reduction != Reduction::mean ? 1 : ignore.all() ? 0 : 1 / total;
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

// The options, in a form that formulas may capture: updates of the weight do not change it.
CrossEntropyOptions saved(CrossEntropyOptions options) {
  if (options.weight.defined())
    options.weight = options.weight.detach();
  return options;
}

void check_smoothing(const char* op, double smoothing) {
  check<ValueError>(smoothing >= 0 && smoothing <= 1,
                    "{}: label_smoothing {} is not between 0 and 1", op, smoothing);
}

// The errors of class ids for logits of this name and shape, and x's dtype.
void check_ids(const char* op, const char* name, const Tensor& x, const Shape& logits,
               const Indices& target, const CrossEntropyOptions& options) {
  check_smoothing(op, options.label_smoothing);
  targets::check_weight(op, options.weight, x,
                        targets::check_ids(op, name, logits, target, options.ignore_index));
}

// (N, V, d1, ...) -> (N, d1, ..., V): kernels need contiguous classes.
Tensor classes_last(const Tensor& x) { return x.dim() <= 2 ? x : movedim(x, {1}, {-1}); }

// ---- on registers ----
//
// The loss of a row is sum_c q_c (-log p_c), p = softmax(x):  dx = (p sum(q) - q) g.  The backward
// computes p again, which costs less than keeping it.  With label smoothing e,
// q_c = weight_c ((1 - e) [c = target] + e / V).

// The losses of rows of logits; or, if g(r) is the gradient of row r's loss, their gradients dx.
template <class T, class G = std::nullptr_t>
Array<T> rows_of(const Tensor& logits, const Indices& target, const CrossEntropyOptions& options,
                 const G& g = {}) {
  using V = simd::Batch<T>;
  constexpr bool is_loss = std::is_null_pointer_v<G>;
  const std::size_t n = logits.size(-1), step = is_loss ? 1 : n;
  const Tensor weights =
      options.weight.defined() ? to(options.weight, dtype_of<T>) : ones({n}, dtype_of<T>);
  const T* const weight = weights.data<T>();
  const T e = static_cast<T>(options.label_smoothing), share = 1 - e;
  const T smooth = e / static_cast<T>(n);
  const kernels::Row<T> row(n);
  const T smooth_sum = options.weight.defined()
                           ? smooth * row.sum([&](auto i) { return i.load(weight); }).get(0)
                           : e;
  auto result = empty_array<T>(is_loss ? target.shape() : logits.shape());
  kernels::for_rows(target.numel(), n, [&](std::size_t r) {
    const std::int64_t id = target.data()[r];
    const T* const x = logits.data<T>() + r * n;
    T* const y = result.data() + r * step;
    if (id == options.ignore_index) {
      std::fill_n(y, step, T(0));
      return;
    }
    const V max = kernels::largest(row, x);
    const T at_target = share * weight[id];
    if constexpr (is_loss) {  // in an order that is exact to rounding where p is near 1
      const V log_sum = log(row.sum([&](auto i) { return exp(i.load(x) - max); }));
      const auto minus_log = [&](const V& z) { return (max - z) + log_sum; };
      *y = at_target * minus_log(x[id]).get(0);
      if (e != 0)
        *y +=
            smooth * row.sum([&](auto i) { return i.load(weight) * minus_log(i.load(x)); }).get(0);
    } else {
      const T sum = row.sum(kernels::exponentials(x, max, y)).get(0), gradient = g(r);
      const V scale((at_target + smooth_sum) * gradient / sum), others(smooth * gradient);
      if (e == 0)  // avoids 0 times an infinite gradient, NaN
        row.each([&](auto i) { i.store(y, i.load(y) * scale); });
      else
        row.each([&](auto i) { i.store(y, i.load(y) * scale - i.load(weight) * others); });
      y[id] -= at_target * gradient;
    }
  });
  return result;
}

// ---- as ops ----

// Class ids.
Tensor composed(const Tensor& x, const Indices& target, const targets::Wanted& wanted,
                const CrossEntropyOptions& options) {
  // (R, V) and (R); ignored rows have no gradient, even if they hold NaN
  const Shape rows{target.numel()};
  Tensor logits = x.dim() == 2 ? x : reshape(x, {rows[0], x.size(-1)});
  const Mask ignore = wanted.ignore.reshape({rows[0], 1});
  if (wanted.any_ignored)
    logits = masked_fill(logits, ignore, 0);
  const Tensor log_p = log_softmax(logits, -1), &given = options.weight,
               weight = given.defined() ? to(given, x.dtype()) : given;  // an observer may widen x
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
Tensor of_ids(const Tensor& input, const Indices& target, const CrossEntropyOptions& options) {
  const targets::Wanted wanted(input, target, options);
  return fused(
      "cross_entropy", std::array{input},
      [=](std::span<const Tensor> in) { return composed(in[0], target, wanted, options); },
      [target, options, total = wanted.total]<class T>(std::span<const Tensor> in) {
        return targets::reduced(rows_of<T>(in[0], target, options), options.reduction, total);
      },
      [target, options, factor = wanted.gradient_factor]<class T>(Context& ctx,
                                                                  std::span<const Saved> in) {
        const T* const g = ctx.gradient().data<T>();
        const auto of_row = [g, each = options.reduction == Reduction::none,
                             f = static_cast<T>(factor)](auto r) { return (each ? g[r] : *g) * f; };
        ctx.add(0, Tensor(rows_of<T>(in[0].tensor(), target, options, of_row)));
      });
}

// ---- linear_cross_entropy ----

using HeadGradients = std::array<Tensor, 3>;  // of the hidden states, the weight and the bias

// The losses of rows of hidden states, in blocks; and the gradients of their sum times `factor`,
// unless null.
template <class T>
Array<T> in_blocks(std::span<const Tensor> in, const Indices& target, double factor, bool autocast,
                   const CrossEntropyOptions& options, HeadGradients* gradients) {
  const std::size_t rows = target.numel(), classes = in[1].size(0), width = in[0].size(-1);
  // With fewer rows, adding blocks to the weight's gradient would take much of the time.
  const std::size_t block = std::max<std::size_t>({128, width / 2, (1 << 20) / (classes + 1)});
  const auto leaf = [&](std::size_t i, const Tensor& part) {
    return part.detach().requires_grad_(gradients != nullptr && in[i].requires_grad());
  };
  const Tensor weight = leaf(1, in[1]), bias = in[2].defined() ? leaf(2, in[2]) : Tensor();
  auto losses = empty_array<T>(target.shape()), dx = empty_array<T>(in[0].shape());
  for (std::size_t begin = 0; begin < rows; begin += block) {
    const auto from = static_cast<std::int64_t>(begin);
    const std::size_t n = std::min(block, rows - begin);
    const ModeGuard mode({gradients != nullptr, nullptr, false, autocast});
    const Tensor x = leaf(0, narrow(reshape(in[0].detach(), {rows, width}), 0, from, n));
    const Tensor y = of_ids(linear(x, weight, bias), target.flatten().narrow(0, from, n), options);
    std::copy_n(y.data<T>(), n, losses.data() + begin);
    if (gradients != nullptr)
      backward({y}, {.grad_outputs = {full_like(y, factor)}});
    if (const Tensor d = x.grad(); d.defined())
      std::copy_n(d.data<T>(), n * width, dx.data() + begin * width);
  }
  if (gradients != nullptr)
    *gradients = {in[0].requires_grad() ? Tensor(std::move(dx)) : Tensor(), weight.grad(),
                  bias.defined() ? bias.grad() : bias};
  return losses;
}

// The gradients that record()'s call of the forward makes, for the first backward.
struct Kept {
  std::atomic_flag made, taken;
  HeadGradients gradients;
};

// Probabilities, x and target (..., V).
Tensor of_probabilities(const Tensor& x, Tensor q, const CrossEntropyOptions& options) {
  const Scope scope("cross_entropy");
  const double e = options.label_smoothing;
  if (e != 0)
    q = q * (1 - e) + e / static_cast<double>(q.size(-1));
  if (options.weight.defined())
    q = q * options.weight;
  return targets::reduced(-sum(q * log_softmax(x, -1), -1), options.reduction,
                          static_cast<double>(numel(detail::leading(x.shape(), 1))));
}

}  // namespace

XGRAD_RULE(cross_entropy, "-log softmax(a)[target], the mean",
           {"g (softmax(a) - one-hot(target)) / N", "-g log softmax(a) / N"},
           "Probability minus truth, for each of the N targets (times weights, if given).");
Tensor cross_entropy(const Tensor& x, const Indices& target, const CrossEntropyOptions& options) {
  check_ids("cross_entropy", "x", x, x.shape(), target, options);
  return of_ids(classes_last(x), target, saved(options));
}

Tensor cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyOptions& options) {
  check_smoothing("cross_entropy", options.label_smoothing);
  const std::size_t dim = targets::class_dim("cross_entropy", x.shape());
  targets::check_weight("cross_entropy", options.weight, x, x.shape()[dim]);
  if (x.shape() != target.shape())
    fail<ShapeError>("cross_entropy: x {} and target probabilities {} must have the same shape",
                     to_string(x.shape()), to_string(target.shape()));
  detail::check_same_dtype("cross_entropy", x, "target", target);
  check<ValueError>(options.ignore_index < 0,
                    "cross_entropy: ignore_index {} has no meaning for target probabilities",
                    options.ignore_index);
  return of_probabilities(classes_last(x), classes_last(target), options);
}

XGRAD_RULE(
    linear_cross_entropy, "cross_entropy(z, target), z = a bᵀ + c",
    {"dz b", "dzᵀ a", "Σ dz over rows"},
    "The logits z would get dz = g (softmax(z) - one-hot(target)) / N; the hidden states, the "
    "weight and the bias get from it what those of linear get.");
Tensor linear_cross_entropy(const Tensor& x, const Tensor& linear_weight, const Indices& target,
                            const Tensor& linear_bias, const CrossEntropyOptions& options) {
  constexpr const char* op = "linear_cross_entropy";
  const std::array inputs{x, linear_weight, linear_bias};
  detail::check_linear(op, x, linear_weight.shape(), linear_bias);
  check<ShapeError>(x.dim() <= 2, "{}: x {} is neither (K) nor (N, K); flatten() it", op,
                    to_string(x.shape()));
  detail::check_operands(op, std::array{x, linear_weight, linear_bias.defined() ? linear_bias : x});
  Shape logits = x.shape();
  logits.back() = linear_weight.shape()[0];
  check_ids(op, "logits", x, logits, target, options);
  const bool autocast = Mode::current().autocast;
  const auto composition = [target, autocast,
                            options = saved(options)](std::span<const Tensor> in) {
    const Autocast same(autocast);
    return of_ids(linear(in[0], in[1], in[2]), target, options);
  };
  const targets::Wanted wanted(x, target, options);
  if (options.reduction == Reduction::none || target.numel() == 0 ||
      !std::isfinite(wanted.gradient_factor))
    return composition(inputs);
  CrossEntropyOptions each = saved(options);
  each.reduction = Reduction::none;
  const auto kept = std::make_shared<Kept>();
  return fused(
      op, inputs, composition,
      [=, total = wanted.total, factor = wanted.gradient_factor, by = options.reduction,
       keep = detail::any_requires_grad(inputs)]<class T>(std::span<const Tensor> in) {
        HeadGradients* d = keep && !kept->made.test_and_set() ? &kept->gradients : nullptr;
        return targets::reduced(in_blocks<T>(in, target, factor, autocast, each, d), by, total);
      },
      [=, factor = wanted.gradient_factor]<class T>(Context& ctx, std::span<const Saved> in) {
        const std::array given{in[0].tensor(), in[1].tensor(), in[2].tensor()};
        HeadGradients found;
        if (!kept->taken.test_and_set())
          found.swap(kept->gradients);
        else  // again, with retain_graph: the same bits
          in_blocks<T>(given, target, factor, autocast, each, &found);
        const double g = ctx.gradient().item();
        for (std::size_t i = 0; i < in.size(); ++i)
          if (Tensor& d = found[i]; d.defined()) {
            const auto scaled = element_update([g](auto e) { return e * c(e, g); }, d);
            if (g != 1)
              update_elements("scale", {&scaled, 1});
            ctx.add(i, std::move(d));
          }
      });
}

// y_r = -weight_t log_p_rt, t = target_r:  d log_p = -weight_t g_r at t, 0 elsewhere, even if g_r
// is NaN and weight_t 0
Tensor nll_loss(const Tensor& log_p, const Indices& target, const NllLossOptions& options) {
  const std::size_t dim = targets::class_dim("nll_loss", log_p.shape());
  targets::check_weight(
      "nll_loss", options.weight, log_p,
      targets::check_ids("nll_loss", "log_p", log_p.shape(), target, options.ignore_index));
  const targets::Wanted wanted(log_p, target, options);
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
      [wanted, dim, shape = log_p.shape()](Context& ctx) {
        const Tensor& g = ctx.gradient();
        if (numel(shape) == 0)  // without classes all targets are ignored
          return ctx.add(0, zeros(shape, g.dtype()));
        const Tensor w = wanted.weights.tensor();
        const Tensor at = where(w != 0.0, w * (g * wanted.gradient_factor), 0.0);
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
