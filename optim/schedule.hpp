#pragma once
// Learning rates that change: functions from the step, counted from 0, to the rate.
//
//   const Schedule rate = warmup_cosine({.learning_rate = 1e-3, .warmup_iters = 100});
//   for (std::size_t step = 0; ...; ++step) { optimizer.set_learning_rate(rate(step)); ... }

#include <cstddef>
#include <functional>
#include <optional>

namespace xgrad::optim {

using Schedule = std::function<double(std::size_t step)>;

/// Always lr.
Schedule constant(double lr);
/// lr * gamma^(step / step_size), rounded down (torch.optim.lr_scheduler.StepLR).  ValueError if
/// step_size is 0.
Schedule step_decay(double lr, std::size_t step_size, double gamma = 0.1);
/// lr * gamma^step (torch.optim.lr_scheduler.ExponentialLR).
Schedule exponential(double lr, double gamma);

struct WarmupCosine {
  double learning_rate = 1e-3;
  std::optional<double> min_lr = {};  ///< none: a tenth of learning_rate
  std::size_t warmup_iters = 100;
  std::size_t lr_decay_iters = 2000;
};
/// learning_rate * (step + 1) / (warmup_iters + 1) before warmup_iters; from there half a cosine
/// wave down to min_lr at lr_decay_iters; then min_lr (nanoGPT).  ValueError if the rate would rise
/// to min_lr, or if warmup_iters is beyond lr_decay_iters.
Schedule warmup_cosine(const WarmupCosine& options);

}  // namespace xgrad::optim
