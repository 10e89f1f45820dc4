#pragma once
// A file of JSON objects, one a line, to which a run adds.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace char_transformer {

class JsonLines {
 public:
  /// The step of a line; none for a line that is not a row.
  using StepOf = std::function<std::optional<std::uint64_t>(const std::string& line)>;

  /// Opens the file, or makes it.  Rows of step `end` or later go, and so does a last one that is
  /// half written.  `kept` is called after step_of() for each row that stays.  Throws FileError if
  /// it cannot be written.
  JsonLines(
      std::string path, std::uint64_t end, const StepOf& step_of,
      const std::function<void()>& kept = [] {});
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;
  ~JsonLines();

  /// Adds a row, without its newline.  False if it cannot be written: then it waits for the next
  /// call, and the file holds whole rows.
  bool add(const std::string& row);
  /// The next row takes the place of the last one that was there when the file was opened.  Only
  /// before any is added.
  void replace_last();
  /// Why not.
  std::string error() const;
  /// How many rows wait.
  std::size_t unwritten() const { return unwritten_; }
  /// All rows, also those that wait, though the file be removed; empty if they cannot be read.
  std::string all() const;
  /// Forces to disk what has been written.
  void sync() const;

 private:
  void read(std::uint64_t end, const StepOf& step_of, const std::function<void()>& kept);
  bool mend();
  bool has_room();
  bool write_waiting();

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;        ///< of the whole rows in the file
  std::uint64_t last_begin_ = 0;  ///< of the last row that was there when it was opened
  std::string waiting_;           ///< rows that are not in the file
  std::size_t unwritten_ = 0;     ///< their number
  bool torn_ = false;             ///< there is half a row after them
  int error_ = 0;                 ///< errno of the last failure
};

}  // namespace char_transformer
