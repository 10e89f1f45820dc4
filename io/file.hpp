#pragma once
// Files on disk: reading at an offset, and writing so that nothing half-written can ever be seen.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace xgrad::io {

/// A regular file that is open for reading.
class ReadFile {
 public:
  /// Throws FileError for a file that is missing, not a regular file, or not readable.
  explicit ReadFile(std::string path);
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&&) = delete;
  ~ReadFile();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Reads exactly `bytes` bytes that begin at `offset`.  Throws FileError if the file ends before.
  void read(void* to, std::size_t bytes, std::uint64_t offset) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// A whole file.  Throws FileError as ReadFile does, and for one of more than `most` bytes.
std::string read_file(const std::string& path, std::uint64_t most);
/// Calls f with each line of a file without its newline, and whether it has one: the last may lack
/// it.  FileError if the file cannot be read to its end.
void for_each_line(const std::string& path,
                   const std::function<void(const std::string& line, bool whole)>& f);

/// A file that appears under its name only when it is complete.  The bytes go to a file beside it,
/// which commit() forces to disk and renames; without commit() it is removed, and what had the name
/// before stays as it was.  A symbolic link is followed to its end, which is written, be it there
/// or not.  Throws FileError for what cannot be written: a folder, a device, a pipe, and a file to
/// which this program prints.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(const void* from, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  [[noreturn]] void failed(const char* what) const;

  std::string path_;    ///< as it was given
  std::string target_;  ///< where links lead
  std::string temporary_;
  int descriptor_ = -1;
};

/// Call it before a long run that writes `path` at its end.  Checks that AtomicFile can write
/// `path`, that no file is there unless `overwrite`, and that it is none of the input files, by
/// device and inode.  Throws FileError.  Inputs that are empty or not there are passed over.
void check_output(const std::string& path, bool overwrite,
                  const std::vector<std::string>& inputs = {});

}  // namespace xgrad::io

// A checksum that notices a changed bit.

struct XXH3_state_s;

namespace xgrad::io {

/// XXH3 with 64 bits (xxHash), of bytes that come in any number of parts.  It guards against
/// accidents, not against someone who means to deceive.
class Checksum {
 public:
  Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  ~Checksum();

  void add(const void* data, std::size_t bytes);
  /// The checksum of all bytes that were added, as 16 hexadecimal digits.
  std::string digits() const;

 private:
  XXH3_state_s* state_;
};

}  // namespace xgrad::io
