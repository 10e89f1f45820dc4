#include <algorithm>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/axis.hpp>
#include <xgrad/autograd/kernels/loss.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/rules.hpp>
#include <xgrad/autograd/ops/targets.hpp>

namespace xgrad {

// y_r = -weight_t log_p_rt, t = target_r:  d log_p = -weight_t g_r at t, 0 elsewhere, also if g_r
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
        const Tensor weights = to(wanted.weights.tensor(), dtype_of<T>);  // also of other inputs
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
        const auto d = static_cast<std::int64_t>(dim);  // that of the classes
        ctx.add(0,
                -scatter_add(zeros(shape, g.dtype()), d, wanted.ids.unsqueeze(d), at.unsqueeze(d)));
      });
}

static void check_alike(const char* op, const Tensor& x, const Tensor& target) {
  if (x.shape() != target.shape())
    fail<ShapeError>(
        "{}: x {} and target {} must have the same shape; where broadcasting is meant, say so with "
        "expand()",
        op, to_string(x.shape()), to_string(target.shape()));
  if (x.dtype() != target.dtype())
    fail<DTypeError>("{}: x is {} but target is {}; convert one with to()", op,
                     to_string(x.dtype()), to_string(target.dtype()));
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
        const double sum = kernels::squared_error(n, a, b);
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

// d limited to +-delta is d within and +-delta beyond, which makes both pieces one.
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
                    "binary_cross_entropy: x has an element that is not in [0, 1]; of logits it is "
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
  // Not (1 - target) x - log p, whose gradient cancels where x is far below 0.
  return weighted((target - 1.0) * logsigmoid(-x) - positive * logsigmoid(x), options);
}

}  // namespace xgrad
