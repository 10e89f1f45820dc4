#pragma once
// What a run shows while it runs: one line that changes, on a terminal; otherwise lines now and
// then.

#include <chrono>
#include <cstddef>
#include <string>

#include "metrics.hpp"

namespace char_transformer {

/// "42 s", "3 min 20 s", "2 h 05 min".
std::string format_duration(double seconds);

/// "1,115,394".
std::string format_count(std::size_t n);

class Progress {
 public:
  /// Of a run that has made `made` of so many steps.
  Progress(std::size_t made, std::size_t steps, std::size_t tokens_per_step);

  /// A step was made.
  void step(const StepRecord& record);
  /// Prints a line that stays.
  void line(const std::string& text);
  /// The same on standard error.
  void warn(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  std::string describe(const StepRecord& record) const;
  void clear() const;

  std::size_t first_;
  std::size_t steps_;
  std::size_t tokens_per_step_;
  std::size_t every_;
  bool terminal_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_ = {};
  double ms_ = 0;  ///< of a step, averaged over the last few
};

}  // namespace char_transformer
