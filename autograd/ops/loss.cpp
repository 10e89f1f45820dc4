#include <algorithm>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/axis.hpp>
#include <xgrad/autograd/kernels/loss.hpp>
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
        const Tensor row_g = reduction == Reduction::mean ? g * wanted.gradient_factor : g;
        const Tensor w = wanted.weights.tensor(), at = where(w != 0.0, w * row_g, 0.0);
        const auto d = static_cast<std::int64_t>(dim);  // that of the classes
        ctx.add(0,
                -scatter_add(zeros(shape, g.dtype()), d, wanted.ids.unsqueeze(d), at.unsqueeze(d)));
      });
}

// y = (x - target)^2:  dx = 2 (x - target) g = -dtarget
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  if (x.shape() != target.shape())
    fail<ShapeError>(
        "mse_loss: x {} and target {} must have the same shape; where broadcasting is meant, say "
        "so with expand()",
        to_string(x.shape()), to_string(target.shape()));
  if (x.dtype() != target.dtype())
    fail<DTypeError>("mse_loss: x is {} but target is {}; convert one with to()",
                     to_string(x.dtype()), to_string(target.dtype()));
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

}  // namespace xgrad
