#pragma once
// The folder of a run: config.json, metrics.jsonl, samples.jsonl, checkpoint.safetensors,
// best.safetensors, checkpoint-00000250.safetensors and so on, and while it runs a lock; of
// report.hpp environment.json and report.html.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/io/json.hpp>

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

/// One run at a time in a folder: holds the folder open, and a lock on the file `lock` in it, which
/// names the process.  It ends with the process, however that ends.
class FolderLock {
 public:
  /// FileError if another process holds it, or the folder cannot be written.  Where the file system
  /// has no locks, a warning says so, and all goes on without.
  explicit FolderLock(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  /// Removes the file.
  ~FolderLock();

  /// Where the folder is now, though it was moved; none if it was removed.
  std::optional<std::string> place();
  /// A path of the folder that is right wherever that is, where the system has one.
  std::string inside() const;
  /// Whether the file is there, in the folder's place.
  bool holds() const;

 private:
  void take();

  std::string folder_;
  int handle_ = -1;      ///< the folder
  int descriptor_ = -1;  ///< the file
};

/// A file of JSON objects with a "step", one a line, to which a run adds.
class Rows {
 public:
  /// Opens the file, or makes it.  Rows of step `end` or later go, and what is no row: the file
  /// then ends before it.  FileError if it cannot be written.
  Rows(std::string path, std::uint64_t end);
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows();

  /// Adds a row.  False if it cannot be written: then it waits for the next call, and the file
  /// holds whole rows.  One of the step of last() takes its place.
  bool add(const std::string& row, std::uint64_t step);
  /// The last row that was there when the file was opened; null where there was none.
  const xgrad::io::Json& last() const { return last_; }
  /// The sum of "ms" in the rows that were there.
  double milliseconds() const { return milliseconds_; }
  std::size_t dropped() const { return dropped_; }  ///< lines that went when it was opened
  std::size_t kept() const { return kept_; }        ///< rows that stayed
  std::string error() const;                        ///< why add() failed
  std::size_t unwritten() const { return unwritten_; }
  /// All rows, also those that wait, though the file be removed; empty if they cannot be read.
  std::string all() const;
  /// Forces to disk what has been written.
  void sync() const;

 private:
  void read(std::uint64_t end);
  bool has_room();
  bool write_waiting();

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;        ///< of the whole rows in the file
  std::uint64_t last_begin_ = 0;  ///< of last()
  xgrad::io::Json last_;
  double milliseconds_ = 0;
  std::size_t dropped_ = 0, kept_ = 0;
  std::string waiting_;        ///< rows that are not in the file
  std::size_t unwritten_ = 0;  ///< their number
  bool torn_ = false;          ///< there is more after the whole rows
  int error_ = 0;              ///< errno of the last failure
};

class RunDir {
 public:
  /// A new run in the folder `out`, or if that is empty in one under runs/ that is numbered from
  /// 000.  Nothing is made yet.  FileError if the folder holds a run, another process trains in it,
  /// or it cannot be made.  With `again` it may hold what a run left that was ended before it saved
  /// anything.
  static RunDir fresh(const std::string& out, bool again = false);
  /// A run that goes on from what the folder holds.
  static RunDir resumed(const std::string& folder) { return {folder, Holds::run}; }

  /// FileError if a file that the run reads is one that it writes.
  void check_input(const std::string& path) const;
  /// Makes the folder if there is none, and locks it.  Throws FileError as above.
  void lock();
  void unlock() { lock_.reset(); }
  /// Once it is open: looks for the folder where it is now, and makes it again, without models, if
  /// it was removed.  Returns what happened, empty for nothing.  FileError if another run may have
  /// begun in its place.
  std::string keep();
  /// Also removes what processes that were killed left half written, writes config.json and
  /// environment.json, and opens the rows of a run that has made so many steps.  If that fails,
  /// what it has made is removed.  Returns what of the folder is lost by going on from there.
  std::string open(const std::string& config, const std::string& environment, std::uint64_t steps);
  bool is_open() const { return metrics_.has_value(); }

  /// Calls `write` with a path of this file of the folder that is right even if that is moved
  /// meanwhile.  What it throws names the file as it is given.
  void save(const std::string& path,
            const std::function<void(const std::string& path)>& write) const;
  /// Gives the last checkpoint a second name, or where the file system has none calls `write`; all
  /// but the last `count` of those up to a step go.
  void keep_checkpoint(std::uint64_t step, std::size_t count,
                       const std::function<void(const std::string& path)>& write) const;

  const std::string& path() const { return path_; }
  Rows& metrics() { return *metrics_; }
  Rows& samples() { return *samples_; }
  std::string checkpoint() const { return path_ + "/" + checkpoint_name; }
  std::string best() const { return path_ + "/" + best_name; }

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
  std::optional<Rows> metrics_, samples_;
};

}  // namespace char_transformer
