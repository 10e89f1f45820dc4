#pragma once
// A run's progress on standard error: one line that changes on a terminal, otherwise occasional
// lines.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training.hpp"

namespace program {

class Progress {
 public:
  /// A run that has made `made` of `steps` steps.
  Progress(std::size_t made, std::size_t steps, std::size_t tokens_per_step);

  void step(const MetricsRow& row);
  /// Reports the done part of an evaluation, from 0 to 1.
  void evaluating(double done);
  /// Reports an estimated loss after this number of steps; `lowest` so far or not.
  void validated(std::uint64_t steps, double loss, bool lowest);
  /// Reports the model's sample after this number of steps.
  void sampled(std::uint64_t steps, const std::string& text);
  /// Prints a line that stays.
  void line(const std::string& text);
  /// The same for a warning.
  void warn(const std::string& text);
  /// Removes the line, so that others can print.
  void clear() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::string how_far() const;
  std::string eta(Clock::time_point begin, double done, double all) const;
  std::vector<std::string> pieces() const;
  void show(const std::vector<std::string>& pieces, bool last = false);

  const std::size_t first_, steps_, tokens_per_step_;
  const bool live_;
  std::size_t made_ = first_;
  Clock::time_point begin_ = {};                 ///< of the first step
  Clock::time_point shown_ = {};                 ///< of the last line
  std::optional<Clock::time_point> evaluation_;  ///< when it began
  double ms_ = 0;                                ///< of a step, averaged over the last few
  std::optional<double> val_loss_;
  MetricsRow latest_;
};

}  // namespace program
