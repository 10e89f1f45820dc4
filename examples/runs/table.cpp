#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "runs.hpp"

namespace runs {

std::optional<double> tokens_per_step(const Run& run) {
  double tokens = 1;
  for (const char* const key : {"batch_size", "block_size", "gradient_accumulation_steps"}) {
    const auto count = run.config.number(key);
    if (count)
      tokens *= *count;
    else if (key != std::string_view("gradient_accumulation_steps"))
      return std::nullopt;
  }
  return tokens;
}

Summary summarise(const Run& run) {
  const Metrics& m = run.metrics;
  Summary s{.steps = m.loss.xs.back() + 1, .planned = run.config.number("max_iters")};
  const std::size_t wanted = std::clamp<std::size_t>(m.loss.ys.size() / 20, 1, 100);
  double total = 0;
  for (std::size_t i = m.loss.ys.size(); i-- > 0;) {
    const double loss = m.loss.ys[i];
    if (!std::isfinite(loss)) {
      ++s.not_finite;
    } else if (s.loss_of < wanted) {
      total += loss;
      ++s.loss_of;
    }
  }
  s.loss = s.loss_of > 0 ? total / static_cast<double>(s.loss_of)
                         : std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < m.validation.ys.size(); ++i) {
    s.validation = m.validation.ys[i];
    if (std::isfinite(*s.validation) && !(s.best && *s.best <= *s.validation)) {
      s.best = s.validation;
      s.best_after = m.validation.xs[i] + 1;
    }
  }
  if (!m.final_validation.ys.empty())
    s.final_validation = m.final_validation.ys.back();
  std::vector<double> times = m.ms.ys;
  std::erase_if(times, [](double ms) { return !std::isfinite(ms) || ms <= 0; });
  if (!times.empty()) {
    double sum = 0;
    for (const double ms : times)
      sum += ms;
    s.seconds = sum / 1000;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    s.ms = *middle;
    if (const auto tokens = tokens_per_step(run))
      s.tokens_per_second = 1000 * *tokens / *s.ms;
  }
  return s;
}

double usual_weight(const std::vector<Run>& runs) {
  std::size_t longest = 0;
  for (const Run& run : runs)
    longest = std::max(longest, run.metrics.loss.ys.size());
  return longest <= 100 ? 0 : 1 - 50.0 / static_cast<double>(longest);
}

}  // namespace runs
