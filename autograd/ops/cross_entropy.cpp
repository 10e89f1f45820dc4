#include <algorithm>
#include <array>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/fused.hpp>
#include <xgrad/autograd/kernels/loss.hpp>
#include <xgrad/autograd/ops/rules.hpp>
#include <xgrad/autograd/ops/targets.hpp>

namespace xgrad {
namespace {

// The options, as a formula may capture them.
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

// (N, V, d1, ...) -> (N, d1, ..., V): the kernels take the classes of a target side by side.
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

template <class T>
kernels::Logits<T> logits(const Tensor& x, const Tensor& weight, const SavedOptions& options) {
  return {static_cast<std::size_t>(numel(without_last(x.shape()))),
          static_cast<std::size_t>(x.shape().back()), x.data<T>(),
          weight.defined() ? weight.data<T>() : nullptr, static_cast<T>(options.label_smoothing)};
}

template <class T>
kernels::RowGradient<T> row_gradient(const Tensor& g, Reduction reduction, double mean_factor) {
  return {g.data<T>(), reduction == Reduction::none,
          reduction == Reduction::mean ? static_cast<T>(mean_factor) : T(1)};
}

// The loss of a row is sum_c q_c (-log p_c), p = softmax(x):  dx = (p sum(q) - q) g.

// Class ids.
Tensor composed(const Tensor& x, const Indices& target, const targets::Wanted& wanted,
                const SavedOptions& options) {
  // (R, V) and (R); rows that are ignored have no gradient whatever is in them
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
        auto losses = empty_array<T>(target.shape());
        const Tensor weight = options.weight_as(dtype_of<T>);
        kernels::cross_entropy(logits<T>(in[0], weight, options), target.data(),
                               options.ignore_index, losses.data());
        return targets::reduced(std::move(losses), options.reduction, total);
      },
      [target, options, factor = wanted.gradient_factor]<class T>(Context& ctx,
                                                                  std::span<const Saved> in) {
        const Tensor x = in[0].tensor();
        auto dx = empty_array<T>(x.shape());
        const Tensor weight = options.weight_as(dtype_of<T>);
        kernels::cross_entropy_backward(
            logits<T>(x, weight, options), target.data(), options.ignore_index,
            row_gradient<T>(ctx.gradient(), options.reduction, factor), dx.data());
        ctx.add(0, std::move(dx));
      });
}

// Probabilities, x and target (..., V): q = weight ((1 - e) target + e / V), and
// dtarget = -(1 - e) weight log p g.
Tensor of_probabilities(const Tensor& input, const Tensor& probabilities,
                        const SavedOptions& options) {
  const Shape rows = without_last(input.shape());
  const auto count = static_cast<double>(numel(rows));
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
      [options, rows, count]<class T>(std::span<const Tensor> in) {
        auto losses = empty_array<T>(rows);
        const Tensor weight = options.weight_as(dtype_of<T>);
        kernels::cross_entropy(logits<T>(in[0], weight, options), in[1].data<T>(), losses.data());
        return targets::reduced(std::move(losses), options.reduction, count);
      },
      [options, count]<class T>(Context& ctx, std::span<const Saved> in) {
        const Tensor x = in[0].tensor(), weight = options.weight_as(dtype_of<T>);
        std::array<Array<T>, 2> gradients;
        std::array<T*, 2> to{};
        for (std::size_t i = 0; i < 2; ++i)
          if (ctx.needs(i)) {
            gradients[i] = empty_array<T>(x.shape());
            to[i] = gradients[i].data();
          }
        kernels::cross_entropy_backward(
            logits<T>(x, weight, options), in[1].value->data<T>(),
            row_gradient<T>(ctx.gradient(), options.reduction, 1 / std::max(count, 1.0)), to[0],
            to[1]);
        for (std::size_t i = 0; i < 2; ++i)
          if (ctx.needs(i))
            ctx.add(i, std::move(gradients[i]));
      });
}

}  // namespace

XGRAD_RULE(
    cross_entropy, "-log softmax(a)[target], the mean",
    {"g (softmax(a) - one-hot(target)) / N", "-g log softmax(a) / N"},
    "Probability minus truth, for each of the N targets (times weights, if they are given).");
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
  if (x.dtype() != target.dtype())
    fail<DTypeError>("cross_entropy: x is {} but target is {}; convert one with to()",
                     to_string(x.dtype()), to_string(target.dtype()));
  check<ValueError>(options.ignore_index < 0,
                    "cross_entropy: ignore_index {} means nothing for target probabilities",
                    options.ignore_index);
  return of_probabilities(classes_last(x), classes_last(target), SavedOptions(options));
}

}  // namespace xgrad
