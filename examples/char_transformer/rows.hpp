#pragma once
// The rows of a run: metrics.jsonl and samples.jsonl.

#include <cstddef>
#include <cstdint>
#include <string>

namespace char_transformer {

/// A file of JSON objects with a "step", one a line, to which a run adds.
class Rows {
 public:
  /// Opens the file, or makes it.  The file then ends before the first row of step `end` or later,
  /// and before what is half written.  FileError if it cannot be written.
  Rows(std::string path, std::uint64_t end);
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows();

  /// Adds a row.  False if it cannot be written: then it waits for the next call, and the file
  /// holds whole rows.
  bool add(const std::string& row);
  std::string error() const;  ///< why that failed
  std::size_t unwritten() const { return unwritten_; }
  /// Forces to disk what has been written.
  void sync() const;

  // What was there when the file was opened.
  std::size_t kept() const { return kept_; }             ///< rows that stayed
  std::size_t dropped() const { return dropped_; }       ///< those that went
  const std::string& cut() const { return cut_; }        ///< the first of them, if of step `end`
  double milliseconds() const { return milliseconds_; }  ///< the sum of "ms" in those that stayed

 private:
  void read(std::uint64_t end);

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;  ///< of the whole rows in the file
  std::size_t kept_ = 0, dropped_ = 0;
  std::string cut_;
  double milliseconds_ = 0;
  std::string waiting_;        ///< rows that are not in the file
  std::size_t unwritten_ = 0;  ///< their number
  int error_ = 0;              ///< errno of the last failure
};

}  // namespace char_transformer
