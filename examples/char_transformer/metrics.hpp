#pragma once
// metrics.jsonl: a JSON object for each step of a run.

#include <cstddef>
#include <cstdint>
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

class Metrics {
 public:
  /// Opens the file, or makes it, for a run that has made so many steps: rows of later ones go, and
  /// so does a last one that is half written.  Throws FileError if it cannot be written.
  Metrics(std::string path, std::uint64_t steps);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  /// Adds a row.  False if it cannot be written: then it waits for the next call, and the file
  /// holds whole rows.
  bool log(const StepRecord& record);
  /// Why not.
  std::string error() const;
  std::size_t unwritten() const { return unwritten_; }

  /// The last row that was there when the file was opened, if it is that of this step.  Logged
  /// again, it takes its own place.
  std::optional<StepRecord> last(std::uint64_t step) const;
  /// Forces to disk what has been written.
  void sync() const;
  /// The time that the rows' steps took.
  double milliseconds() const { return milliseconds_; }

 private:
  bool mend();
  bool write_waiting();
  void cut(std::uint64_t size);

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;     ///< of the whole rows in the file
  std::string waiting_;        ///< rows that are not in the file
  std::size_t unwritten_ = 0;  ///< their number
  bool torn_ = false;          ///< there is half a row after them
  int error_ = 0;              ///< errno of the last failure
  double milliseconds_ = 0;
  std::optional<StepRecord> last_;  ///< the last row that was there when it was opened
  std::uint64_t last_begin_ = 0;
};

}  // namespace char_transformer
