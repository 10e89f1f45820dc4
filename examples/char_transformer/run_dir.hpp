#pragma once
// The folder of a run: config.json, metrics.jsonl, samples.jsonl, checkpoint.safetensors,
// best.safetensors, checkpoint-00000250.safetensors and so on, and while it runs a lock; of
// report.hpp environment.json and report.html.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rows.hpp"

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
/// The checkpoint in a run's folder: the last, or else the best, which is saved first, or else the
/// latest that was kept.  None if there is none.
std::optional<std::string> checkpoint_in(const std::string& folder);
/// The same for a path that may be a checkpoint itself.  FileError for a folder without one.
std::string find_checkpoint(const std::string& path);

/// One run at a time in a folder: it holds the folder open, wherever that is moved, and a lock on
/// the file `lock` in it, which names the process and ends with it, however that ends.
class RunDir {
 public:
  enum class Holds { nothing, leftovers, run };
  /// `path` may be empty: a new folder under runs/, numbered from 000.  Nothing is made yet.
  /// FileError if the folder cannot be made, or holds more than it may: nothing, what a run left
  /// that was ended before it saved anything, or a run.
  RunDir(std::string path, Holds holds);
  RunDir(const RunDir&) = delete;
  RunDir& operator=(const RunDir&) = delete;
  ~RunDir() { unlock(); }

  /// FileError if a file that the run reads is one that it writes.
  void check_input(const std::string& path) const;
  /// Makes the folder if there is none, and locks it.  FileError as above, or if another process
  /// trains in it.
  void lock();
  void unlock();
  /// Looks for a folder that was locked where it is now; says so if it was moved.  FileError if it
  /// was removed, or another run may have begun in it.
  std::string keep();
  /// Also removes what processes that were killed left half written, writes config.json and
  /// environment.json, and opens the rows of a run that has made so many steps, and has so many
  /// rows of metrics.  If that fails, what it has made is removed.  Returns what of the folder is
  /// lost by going on from there.
  std::string open(const std::string& config, const std::string& environment, std::uint64_t steps,
                   std::uint64_t rows);
  bool is_open() const { return metrics_.has_value(); }

  /// Calls `write` with a path of this file of the folder that is right even if that is moved
  /// meanwhile.  What it throws names the file as people know it.
  void save(const std::string& name,
            const std::function<void(const std::string& path)>& write) const;
  /// Removes the checkpoints of later steps: of a run that goes on from an earlier one.
  void drop_later(std::uint64_t step) const;
  /// Gives the last checkpoint a second name; all but the last `count` of those up to a step go.
  void keep_checkpoint(std::uint64_t step, std::size_t count) const;

  const std::string& path() const { return path_; }
  std::string checkpoint() const { return path_ + "/" + checkpoint_name; }
  std::string best() const { return path_ + "/" + best_name; }
  Rows& metrics() { return *metrics_; }
  Rows& samples() { return *samples_; }

 private:
  void check() const;
  bool make_folder(const std::string& path);
  bool holds_lock() const;
  std::string inside() const;
  std::string noted(const char* name);
  void write_text(const char* name, const std::string& text);
  std::string lost_after(std::uint64_t steps, std::uint64_t rows) const;

  std::string path_;
  Holds holds_;
  int handle_ = -1, lock_ = -1;    ///< the folder, and the file `lock`
  std::vector<std::string> made_;  ///< files and folders that were not there before
  std::optional<Rows> metrics_, samples_;
};

}  // namespace char_transformer
