#include <algorithm>
#include <array>
#include <xgrad/autograd/engine.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/loss.hpp>
#include <xgrad/autograd/ops/targets.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad {
namespace {

// The options, as a formula may capture them.
struct Options {
  Saved weight;
  std::int64_t ignore_index;
  Reduction reduction;
  double label_smoothing;
  explicit Options(const CrossEntropyOptions& o)
      : weight(o.weight),
        ignore_index(o.ignore_index),
        reduction(o.reduction),
        label_smoothing(o.label_smoothing) {}
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
kernels::Logits<T> logits(const Tensor& x, const Options& options) {
  return {static_cast<std::size_t>(numel(without_last(x.shape()))),
          static_cast<std::size_t>(x.shape().back()), x.data<T>(),
          options.weight ? options.weight.value->data<T>() : nullptr,
          static_cast<T>(options.label_smoothing)};
}

template <class T>
kernels::RowGradient<T> row_gradient(const Tensor& g, Reduction reduction, double mean_factor) {
  return {g.data<T>(), reduction == Reduction::none,
          reduction == Reduction::mean ? static_cast<T>(mean_factor) : T(1)};
}

// The loss of a row is sum_c q_c (-log p_c), p = softmax(x):  dx = (p sum(q) - q) g.

// Class ids, x (..., V): q is a constant.
Tensor of_ids(const Tensor& input, const Indices& target, const Options& options) {
  const auto divisor = targets::denominator(target, options.weight.tensor(), options.ignore_index);
  return record(
      "cross_entropy", {input},
      [target, options, divisor](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto losses = empty_array<T>(target.shape());
          kernels::cross_entropy(logits<T>(in[0], options), target.data(), options.ignore_index,
                                 losses.data());
          return targets::reduced(std::move(losses), options.reduction, divisor.weight);
        });
      },
      [target, options, divisor, saved = Saved(input)](Sink& sink) {
        const Tensor x = saved.tensor(), &g = sink.gradient();
        const Reduction reduction = options.reduction;
        const double factor = divisor.gradient_factor();
        if (sink.create_graph()) {
          const std::size_t last = x.dim() - 1;
          const Tensor q =
              targets::wanted(x.shape(), g.dtype(), last, target, options.weight.tensor(),
                              options.ignore_index, options.label_smoothing);
          const Tensor all = sum(q, -1, true),
                       row_g = targets::expanded_gradient(g, last, reduction, factor);
          return sink.add(
              0, where(all != 0.0, softmax(x, -1) * (all * row_g) - targets::of_wanted(q, row_g),
                       0.0));
        }
        dispatch(g.dtype(), [&]<class T>() {
          auto dx = empty_array<T>(x.shape());
          kernels::cross_entropy_backward(logits<T>(x, options), target.data(),
                                          options.ignore_index,
                                          row_gradient<T>(g, reduction, factor), dx.data());
          sink.add(0, std::move(dx));
        });
      });
}

// Probabilities, x and target (..., V): q = weight ((1 - e) target + e / V), and
// dtarget = -(1 - e) weight log p g.
Tensor of_probabilities(const Tensor& input, const Tensor& probabilities, const Options& options) {
  const Shape rows = without_last(input.shape());
  const auto count = static_cast<double>(numel(rows));
  return record(
      "cross_entropy", {input, probabilities},
      [options, rows, count](std::span<const Tensor> in) {
        return dispatch(in[0].dtype(), [&]<class T>() {
          auto losses = empty_array<T>(rows);
          kernels::cross_entropy(logits<T>(in[0], options), in[1].data<T>(), losses.data());
          return targets::reduced(std::move(losses), options.reduction, count);
        });
      },
      [options, count, saved_x = Saved(input), saved_target = Saved(probabilities)](Sink& sink) {
        const Tensor x = saved_x.tensor(), target = saved_target.tensor(), &g = sink.gradient();
        const double mean_factor = 1 / std::max(count, 1.0);
        if (sink.create_graph()) {
          const double smoothing = options.label_smoothing;
          const Tensor row_g =
              targets::expanded_gradient(g, x.dim() - 1, options.reduction, mean_factor);
          const Tensor weight = options.weight ? options.weight.tensor() : scalar(1, x.dtype());
          if (sink.needs(0)) {
            const Tensor q =
                weight * (target * (1 - smoothing) + smoothing / static_cast<double>(x.size(-1)));
            sink.add(0, (softmax(x, -1) * sum(q, -1, true) - q) * row_g);
          }
          if (sink.needs(1))
            sink.add(1, log_softmax(x, -1) * (weight * (smoothing - 1)) * row_g);
          return;
        }
        dispatch(x.dtype(), [&]<class T>() {
          std::array<Array<T>, 2> gradients;
          std::array<T*, 2> to{};
          for (std::size_t i = 0; i < 2; ++i)
            if (sink.needs(i)) {
              gradients[i] = empty_array<T>(x.shape());
              to[i] = gradients[i].data();
            }
          kernels::cross_entropy_backward(logits<T>(x, options), target.data<T>(),
                                          row_gradient<T>(g, options.reduction, mean_factor), to[0],
                                          to[1]);
          for (std::size_t i = 0; i < 2; ++i)
            if (sink.needs(i))
              sink.add(i, std::move(gradients[i]));
        });
      });
}

}  // namespace

Tensor cross_entropy(const Tensor& x, const Indices& target, const CrossEntropyOptions& options) {
  check_smoothing(options.label_smoothing);
  targets::check_ids("cross_entropy", x, target, options.ignore_index);
  targets::check_weight("cross_entropy", options.weight, x);
  if (Mode::current().decompose && options.label_smoothing == 0) {
    const Scope scope("cross_entropy");
    const auto classes = static_cast<std::int64_t>(targets::class_dim("cross_entropy", x));
    return nll_loss(log_softmax(x, classes), target,
                    {options.weight, options.ignore_index, options.reduction});
  }
  return of_ids(classes_last(x), target, Options(options));
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
  return of_probabilities(classes_last(x), classes_last(target), Options(options));
}

}  // namespace xgrad
