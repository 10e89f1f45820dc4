#include <xgrad/optim/schedule.hpp>

#include <cmath>
#include <numbers>
#include <tuple>
#include <xgrad/autograd/fail.hpp>

namespace xgrad::optim {

Schedule constant(double lr) {
  return [lr](std::size_t) { return lr; };
}

Schedule step_decay(double lr, std::size_t step_size, double gamma) {
  check<ValueError>(step_size > 0, "step_decay: step_size is 0");
  return [=](std::size_t step) {
    const std::size_t decays = step / step_size;
    return lr * std::pow(gamma, static_cast<double>(decays));
  };
}

Schedule exponential(double lr, double gamma) {
  return [=](std::size_t step) { return lr * std::pow(gamma, static_cast<double>(step)); };
}

Schedule warmup_cosine(const WarmupCosine& o) {
  const double min_lr = o.min_lr.value_or(o.learning_rate / 10);
  check<ValueError>(min_lr <= o.learning_rate, "warmup_cosine: min_lr {} is above learning_rate {}",
                    min_lr, o.learning_rate);
  check<ValueError>(o.warmup_iters <= o.lr_decay_iters,
                    "warmup_cosine: warmup_iters {} is beyond lr_decay_iters {}", o.warmup_iters,
                    o.lr_decay_iters);
  return [o, min_lr](std::size_t step) {
    const auto [at, warmup, end] =
        std::tuple{static_cast<double>(step), static_cast<double>(o.warmup_iters),
                   static_cast<double>(o.lr_decay_iters)};
    if (at < warmup)
      return o.learning_rate * (at + 1) / (warmup + 1);
    if (at >= end)
      return min_lr;
    const double way = (at - warmup) / (end - warmup);  // 0 to 1
    return min_lr + 0.5 * (1 + std::cos(std::numbers::pi * way)) * (o.learning_rate - min_lr);
  };
}

}  // namespace xgrad::optim
