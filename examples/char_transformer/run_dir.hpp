#pragma once
// The folder of a run: config.json, metrics.jsonl, samples.jsonl, checkpoint.safetensors,
// best.safetensors, checkpoint-00000250.safetensors and so on, and while it runs a lock; of
// report.hpp environment.json and report.html.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "folder_lock.hpp"
#include "metrics.hpp"
#include "samples.hpp"

namespace char_transformer {

inline constexpr const char* checkpoint_name = "checkpoint.safetensors";
inline constexpr const char* best_name = "best.safetensors";
/// Whether it is the name of a checkpoint in a run's folder: one of these, or one that was kept.
bool is_checkpoint_name(const std::string& name);
/// FileError if a path, or where it leads, is a file of a run's folder, there or not: training
/// alone writes those.
void check_no_file_of_run(const std::string& path);
/// The steps made when a checkpoint was saved, of which only the header is read; 0 if there is
/// none.
std::uint64_t step_of(const std::string& checkpoint);

/// The checkpoint in a run's folder: the last, or else the best, which is saved first.  None if
/// there is none.
std::optional<std::string> checkpoint_in(const std::string& folder);
/// The same for a path that may be a checkpoint itself.  FileError for a folder without one.
std::string find_checkpoint(const std::string& path);

class RunDir {
 public:
  /// A new run in the folder `out`, or if that is empty in one under runs/ that is numbered from
  /// 000.  Nothing is made yet.  FileError if the folder holds a run, another process trains in it,
  /// or it cannot be made.  With `again` it may hold what a run left that was ended before it saved
  /// anything.
  static RunDir fresh(const std::string& out, bool again = false);
  /// A run that goes on from what the folder holds.
  static RunDir resumed(const std::string& folder);

  /// FileError if a file that the run reads is one that it writes.
  void check_input(const std::string& path) const;
  /// Makes the folder if there is none, and locks it.  Throws FileError as above.
  void lock();
  void unlock() { lock_.reset(); }
  /// Once it is open: looks for the folder where it is now, and makes it again, without models, if
  /// it was removed.  Returns what happened, empty for nothing.  Throws FileError if another run
  /// may have begun in its place.
  std::string keep();
  /// Calls f with a path of this file of the folder that is right even if that is moved meanwhile.
  /// What f throws names the file as it is given.
  void save(const std::string& path, const std::function<void(const std::string& path)>& f) const;
  /// Also removes what processes that were killed left half written, writes config.json and
  /// environment.json, and opens the metrics and samples of a run that has made so many steps.  If
  /// that fails, what it has made is removed.
  void open(const std::string& config, const std::string& environment, std::uint64_t steps);
  bool is_open() const { return metrics_.has_value(); }

  const std::string& path() const { return path_; }
  Metrics& metrics() { return *metrics_; }
  Samples& samples() { return *samples_; }
  std::string checkpoint() const { return path_ + "/" + checkpoint_name; }
  std::string best() const { return path_ + "/" + best_name; }
  /// The checkpoint that is kept of a step.
  std::string kept(std::uint64_t step) const;
  /// Removes all but the last `count` of those up to a step.
  void remove_kept(std::uint64_t step, std::size_t count) const;

 private:
  enum class Holds { nothing, no_checkpoint, run };
  RunDir(std::string path, Holds holds) : path_(std::move(path)), holds_(holds) {}
  void check() const;
  void open(std::uint64_t steps, const std::string& metrics, const std::string& samples);
  std::string noted(const char* name);

  std::string path_;               ///< empty until a new folder is numbered
  Holds holds_;                    ///< what the folder may hold before
  std::vector<std::string> made_;  ///< files and folders that were not there before
  std::string config_, environment_;
  std::optional<FolderLock> lock_;
  std::optional<Metrics> metrics_;
  std::optional<Samples> samples_;
};

}  // namespace char_transformer
