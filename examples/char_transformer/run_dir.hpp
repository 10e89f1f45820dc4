#pragma once
// The folder of a run: config.json, environment.json, metrics.jsonl, samples.jsonl,
// checkpoint.safetensors, best.safetensors, report.html.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <xgrad/io/checkpoint.hpp>

namespace char_transformer {

inline constexpr const char* checkpoint_name = "checkpoint.safetensors";
inline constexpr const char* best_name = "best.safetensors";
/// The names in a folder; none if it is not there.  FileError if it cannot be read.
std::vector<std::string> names_in(const std::string& folder);
/// Whether it is the name of a checkpoint in a run's folder: one of these two.
bool is_checkpoint_name(const std::string& name);
/// FileError if a path, or where it leads, is a file of a run's folder, there or not: training
/// alone writes those.
void check_no_file_of_run(const std::string& path);
/// The steps made when a checkpoint was saved, of which only the header is read; 0 if that cannot
/// be read.
std::uint64_t step_of(const std::string& checkpoint);
/// The checkpoint in a run's folder: the last, or else the best, which is saved first.  None if
/// there is none.
std::optional<std::string> checkpoint_in(const std::string& folder);
/// The same for a path that may be a checkpoint itself.  FileError for a folder without one.
std::string find_checkpoint(const std::string& path);
/// xgrad::io::load_checkpoint(), whose FileError also names the other checkpoint of the folder.
xgrad::io::Checkpoint read_checkpoint(const std::string& path);

/// A file of JSON objects with a "step", one a line, to which a run adds.
class JsonLines {
 public:
  /// Opens the file, or makes it, and reads it up to the first row of step `end` or later, or to
  /// what is half written.  FileError if it cannot be read or written.
  JsonLines(std::string path, std::uint64_t end);
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;
  ~JsonLines();

  /// Cuts the file off behind its whole rows.
  void cut_off();
  /// Adds a row.  FileError if it cannot be written: then the file holds whole rows.
  void add(const std::string& row);
  /// Forces to disk what has been written.
  void sync() const;

  std::size_t dropped = 0;  ///< rows that were there and went
  std::uint64_t next = 0;   ///< the step after that of the last row that was there and stays
  std::string cut;          ///< the first of them, if of step `end`

 private:
  explicit JsonLines(std::string path);

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;  ///< of the whole rows in the file
};

/// One run at a time in a folder, which it holds locked.
class RunDir {
 public:
  enum class Holds { nothing, leftovers, run };
  /// `path` may be empty: a new folder under runs/, numbered from 000.  Nothing is made yet.
  /// FileError if the folder cannot be made, or holds more than it may: nothing, what a run left
  /// that was ended before it saved anything, or a run.
  RunDir(std::string path, Holds holds);
  ~RunDir() { unlock(); }

  /// FileError if a file that the run reads is one that it writes.
  void check_input(const std::string& path) const;
  /// Makes the folder if there is none, and locks it.  FileError as above, or if another process
  /// trains in it.
  void lock();
  void unlock();
  /// Also removes what processes that were killed left half written, writes config.json and
  /// environment.json, and opens the rows of a run that has made so many steps, and has so many
  /// rows of metrics.  If that fails, what it has made is removed.  Returns what of the folder is
  /// lost by going on from there.
  std::string open(const std::string& config, const std::string& environment, std::uint64_t steps,
                   std::uint64_t rows);

  /// Removes checkpoints of later steps.
  void tidy(std::uint64_t step) const;

  const std::string& path() const { return path_; }
  std::string checkpoint() const { return path_ + "/" + checkpoint_name; }
  JsonLines& metrics() { return *metrics_; }
  JsonLines& samples() { return *samples_; }

 private:
  void check() const;
  void make_folder(const std::string& path);
  std::string noted(const char* name);

  std::string path_;
  Holds holds_;
  int handle_ = -1;                ///< the folder
  std::vector<std::string> made_;  ///< files and folders that were not there before
  std::optional<JsonLines> metrics_, samples_;
};

}  // namespace char_transformer
