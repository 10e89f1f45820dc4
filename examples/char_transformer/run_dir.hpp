#pragma once
// The folder of a run: config.json, metrics.jsonl, checkpoint.safetensors.

#include <cstddef>
#include <fstream>
#include <optional>
#include <string>

namespace char_transformer {

/// What is written down of one step.
struct StepRecord {
  std::size_t step = 0;  ///< from 0
  double loss = 0;       ///< before the step's update
  double lr = 0;
  double grad_norm = 0;                 ///< before clipping
  double ms = 0;                        ///< of the step, without evaluations
  std::optional<double> val_loss = {};  ///< after the step's update
};

class RunDir {
 public:
  /// Makes the folder `out`, or if that is empty a new one under runs/, numbered from 000, and
  /// writes config.json.  Throws FileError if it cannot be written, or holds a run.
  RunDir(const std::string& out, const std::string& config);

  const std::string& path() const { return path_; }
  std::string checkpoint() const { return path_ + "/checkpoint.safetensors"; }

  /// Adds a line to metrics.jsonl.  Throws FileError if it cannot be written.
  void log(const StepRecord& record);

 private:
  std::string path_;
  std::ofstream metrics_;
};

}  // namespace char_transformer
