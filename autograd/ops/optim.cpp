#include <xgrad/autograd/ops/optim.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/kernels/optim.hpp>
#include <xgrad/autograd/profile.hpp>

namespace xgrad {

namespace {

void check_fits(const char* op, std::size_t i, const Tensor& parameter, const char* name,
                const Tensor& x) {
  if (x.shape() != parameter.shape() || x.dtype() != parameter.dtype())
    fail<ShapeError>("{}: parameter {} is {} of shape {} and its {} is {} of shape {}", op, i,
                     to_string(parameter.dtype()), to_string(parameter.shape()), name,
                     to_string(x.dtype()), to_string(x.shape()));
}

// After this, writing to x copies nothing and cannot fail.
void unshare(Tensor& x) {
  dispatch(x.dtype(), [&]<class T>() { detail::writable_data<T>(x); });
}

template <template <class> class Task>
using Tasks = std::tuple<std::vector<Task<float>>, std::vector<Task<double>>>;

template <class T>
kernels::AdamTask<T> task(AdamStep& s) {
  const auto t = static_cast<double>(s.t);
  // Coefficients are computed in double and rounded once.
  return {.parameter = detail::writable_data<T>(s.parameter),
          .gradient = s.gradient.data<T>(),
          .exp_avg = detail::writable_data<T>(s.exp_avg),
          .exp_avg_sq = detail::writable_data<T>(s.exp_avg_sq),
          .n = static_cast<std::size_t>(s.parameter.numel()),
          .keep = static_cast<T>(s.decoupled ? 1 - s.lr * s.weight_decay : 1),
          .decay = static_cast<T>(s.decoupled ? 0 : s.weight_decay),
          .beta1 = static_cast<T>(s.beta1),
          .beta2 = static_cast<T>(s.beta2),
          .rest1 = static_cast<T>(1 - s.beta1),
          .rest2 = static_cast<T>(1 - s.beta2),
          .step_size = static_cast<T>(s.lr / (1 - std::pow(s.beta1, t))),
          .correction = static_cast<T>(std::sqrt(1 - std::pow(s.beta2, t))),
          .eps = static_cast<T>(s.eps)};
}

template <class T>
kernels::SgdTask<T> task(SgdStep& s) {
  Tensor& buffer = s.momentum_buffer;
  return {.parameter = detail::writable_data<T>(s.parameter),
          .gradient = s.gradient.data<T>(),
          .momentum_buffer = buffer.defined() ? detail::writable_data<T>(buffer) : nullptr,
          .n = static_cast<std::size_t>(s.parameter.numel()),
          .lr = static_cast<T>(s.lr),
          .weight_decay = static_cast<T>(s.weight_decay),
          .momentum = static_cast<T>(s.momentum),
          .rest = s.first ? T(1) : static_cast<T>(1 - s.dampening),
          .nesterov = s.nesterov};
}

// Pointers are taken when nothing is shared any more: copying one Tensor's elements may free those
// that another one, its gradient, has been pointing to.
template <template <class> class Task, class Step>
Tasks<Task> tasks(std::span<Step> steps) {
  Tasks<Task> result;
  for (Step& s : steps)
    dispatch(s.parameter.dtype(),
             [&]<class T>() { std::get<std::vector<Task<T>>>(result).push_back(task<T>(s)); });
  return result;
}

}  // namespace

void adam_step(std::span<AdamStep> steps) {
  const detail::Timed timed("adam_step");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    AdamStep& s = steps[i];
    check_fits("adam_step", i, s.parameter, "gradient", s.gradient);
    check_fits("adam_step", i, s.parameter, "exp_avg", s.exp_avg);
    check_fits("adam_step", i, s.parameter, "exp_avg_sq", s.exp_avg_sq);
    for (Tensor* const x : {&s.parameter, &s.exp_avg, &s.exp_avg_sq})
      unshare(*x);
  }
  const auto [floats, doubles] = tasks<kernels::AdamTask>(steps);
  kernels::adam<float>(floats);
  kernels::adam<double>(doubles);
}

void sgd_step(std::span<SgdStep> steps) {
  const detail::Timed timed("sgd_step");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    SgdStep& s = steps[i];
    check_fits("sgd_step", i, s.parameter, "gradient", s.gradient);
    unshare(s.parameter);
    if (s.momentum_buffer.defined()) {
      check_fits("sgd_step", i, s.parameter, "momentum_buffer", s.momentum_buffer);
      unshare(s.momentum_buffer);
    }
  }
  const auto [floats, doubles] = tasks<kernels::SgdTask>(steps);
  kernels::sgd<float>(floats);
  kernels::sgd<double>(doubles);
}

double total_norm(std::span<const Tensor> tensors, double p) {
  const detail::Timed timed("total_norm");
  double total = 0;
  for (const Tensor& x : tensors)
    dispatch(x.dtype(), [&]<class T>() {
      if (p == 2)
        total += kernels::sum_of_squares(x.data<T>(), x.numel());
      else if (std::isinf(p))
        total = kernels::largest_magnitude(x.data<T>(), x.numel(), total);
      else
        total += kernels::sum_of_powers(x.data<T>(), x.numel(), p);
    });
  if (std::isinf(p))
    return total;
  std::int64_t elements = 0;
  for (const Tensor& x : tensors)
    elements += x.numel();
  using Limits = std::numeric_limits<double>;
  if (std::isinf(total) || total < Limits::min() * static_cast<double>(elements)) {
    // powers of float64 leave the range before their norm does
    const double most = total_norm(tensors, Limits::infinity());
    if (most == 0 || std::isinf(most))
      return most;
    total = 0;
    for (const Tensor& x : tensors)
      dispatch(x.dtype(), [&]<class T>() {
        for (const T v : std::span(x.data<T>(), static_cast<std::size_t>(x.numel())))
          total += std::pow(std::abs(static_cast<double>(v)) / most, p);
      });
    return most * std::pow(total, 1 / p);
  }
  return p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
}

void foreach_tree_sum_(std::span<std::vector<Tensor>> lists) {
  const detail::Timed timed("foreach_tree_sum_");
  // Which of a list becomes the sum: the first that is defined.  Null if there is nothing to add.
  std::vector<Tensor*> sums;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const auto first = std::ranges::find_if(lists[i], &Tensor::defined);
    sums.push_back(nullptr);
    if (first == lists[i].end())
      continue;
    for (const Tensor& x : lists[i])
      if (x.defined())
        check_fits("foreach_tree_sum_", i, *first, "addend", x);
    if (std::count_if(first, lists[i].end(), [](const Tensor& x) { return x.defined(); }) < 2) {
      std::swap(*first, lists[i].front());
    } else {
      unshare(*first);
      sums.back() = &*first;
    }
  }
  Tasks<kernels::SumTask> tasks;
  for (std::size_t i = 0; i < lists.size(); ++i)
    if (Tensor* const sum = sums[i])
      dispatch(sum->dtype(), [&]<class T>() {
        auto& task = std::get<std::vector<kernels::SumTask<T>>>(tasks).emplace_back();
        task.sum = detail::writable_data<T>(*sum);
        task.n = static_cast<std::size_t>(sum->numel());
        for (const Tensor& x : lists[i])
          task.parts.push_back(x.defined() ? x.data<T>() : nullptr);
      });
  kernels::sum_tree<float>(std::get<0>(tasks));
  kernels::sum_tree<double>(std::get<1>(tasks));
  for (std::size_t i = 0; i < lists.size(); ++i)
    if (sums[i] != nullptr)
      std::swap(*sums[i], lists[i].front());
}

void foreach_mul_(std::span<Tensor> tensors, double factor) {
  const detail::Timed timed("foreach_mul_");
  for (Tensor& x : tensors)
    unshare(x);
  for (Tensor& x : tensors)
    dispatch(x.dtype(), [&]<class T>() {
      kernels::scale(detail::writable_data<T>(x), x.numel(), static_cast<T>(factor));
    });
}

void foreach_clamp_(std::span<Tensor> tensors, double limit) {
  for (Tensor& x : tensors)
    unshare(x);
  for (Tensor& x : tensors)
    dispatch(x.dtype(), [&]<class T>() {
      kernels::clamp(detail::writable_data<T>(x), x.numel(), static_cast<T>(limit));
    });
}

}  // namespace xgrad
