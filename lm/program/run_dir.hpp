#pragma once
// The folder of a run: config.json, environment.json, metrics.jsonl, samples.jsonl,
// checkpoint.safetensors, best.safetensors, report.html; of adapters also adapter_config.json and
// adapter_model.safetensors.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/json.hpp>

namespace program {

inline constexpr const char* checkpoint_name = "checkpoint.safetensors";
inline constexpr const char* best_name = "best.safetensors";
/// The names in a folder; empty if it does not exist.  FileError if it cannot be read.
std::vector<std::string> names_in(const std::string& folder);
bool is_checkpoint_name(const std::string& name);
/// FileError if a path or its target is a file of a run, existing or not: only training writes
/// those.
void check_no_file_of_run(const std::string& path);
/// The steps made before a checkpoint was saved, from its header alone; 0 if that cannot be read.
std::uint64_t step_of(const std::string& checkpoint);
/// The checkpoint in a run's folder: the last, else the best, which is saved first.  None if there
/// is none.
std::optional<std::string> checkpoint_in(const std::string& folder);
/// The same for a path that may be a checkpoint itself.  FileError for a folder without one.
std::string find_checkpoint(const std::string& path);
/// xgrad::io::load_checkpoint(), whose FileError also names the other checkpoint of the folder.
xgrad::io::Checkpoint read_checkpoint(const std::string& path);

/// An append-only file of JSON objects with a "step", one a line.
class JsonLines {
 public:
  /// Opens or creates the file, and reads it up to the first row of step `end` or later, or to an
  /// incomplete row.  FileError if it cannot be read or written.
  JsonLines(std::string path, std::uint64_t end);
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;
  ~JsonLines();

  /// Truncates the file after the rows that were read.
  void cut_off();
  /// Appends a row.  FileError if it cannot be written: the file then holds only whole rows.
  void add(const std::string& row);
  /// Forces written rows to disk.
  void sync() const;

  std::size_t dropped = 0;  ///< later rows that cut_off() removes
  std::uint64_t next = 0;   ///< one more than the step of the last row that stays
  xgrad::io::Json cut;      ///< the first removed row, if of step `end`; else null

 private:
  explicit JsonLines(std::string path);

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;  ///< of the whole rows in the file
};

/// A run's folder, locked so that it has one run at a time.
class RunDir {
 public:
  enum class Holds { nothing, leftovers, run };
  /// `path` may be empty: a new folder under runs/, numbered from 000.  Makes nothing yet.
  /// FileError if the folder cannot be made, or holds more than `holds` allows: nothing, leftovers
  /// of a run that saved nothing, or a run.
  RunDir(std::string path, Holds holds);
  ~RunDir() { unlock(); }

  /// FileError if an input of the run is a file that the run writes.
  void check_input(const std::string& path) const;
  /// Makes the folder if it does not exist, and locks it.  FileError as above, or if another
  /// process trains in it.
  void lock();
  void unlock();
  /// Also removes temporary files of killed processes, writes config.json and environment.json, and
  /// opens both .jsonl files at these steps and rows.  If that fails, removes everything it made.
  /// Returns a description of data that is lost by continuing from there.
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
  std::vector<std::string> made_;  ///< files and folders that did not exist before
  std::optional<JsonLines> metrics_, samples_;
};

}  // namespace program
