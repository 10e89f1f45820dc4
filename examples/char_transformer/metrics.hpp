#pragma once
// metrics.jsonl: a JSON object for each step of a run.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "json_lines.hpp"

namespace char_transformer {

/// What is written down of one step.
struct StepRecord {
  std::size_t step = 0;  ///< from 0
  double loss = 0;       ///< before the step's update
  double lr = 0;
  double grad_norm = 0;                        ///< before clipping
  double ms = 0;                               ///< of the step, without evaluations
  std::optional<double> val_loss_before = {};  ///< of step 0: an estimate before its update
  std::optional<double> val_loss = {};         ///< an estimate after the step's update
  std::string val_loss_over = {};              ///< what these two are estimated over
  std::optional<double> final_val_loss = {};   ///< of the last step, over whole blocks
  std::string final_val_loss_over = {};
  std::string changes = {};  ///< of the run's flags before this step
};

class Metrics {
 public:
  /// Of a run that has made so many steps: rows of later ones go.  Throws as JsonLines.
  Metrics(std::string path, std::uint64_t steps);

  /// Adds a row; as JsonLines::add().
  bool log(const StepRecord& record);

  /// The last row that was there when the file was opened, if it is that of this step.  Logged
  /// again, it takes its own place.
  std::optional<StepRecord> last(std::uint64_t step) const;
  /// The time that the rows' steps took.
  double milliseconds() const { return milliseconds_; }

  const JsonLines& lines() const { return lines_; }

 private:
  double milliseconds_ = 0;
  std::optional<StepRecord> last_;  ///< the last row that was there when it was opened
  JsonLines lines_;
};

}  // namespace char_transformer
