#pragma once
// Files on disk: reads at an offset, atomic writes, and a checksum that detects any changed bit.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

struct XXH3_state_s;

namespace xgrad::io {

/// A regular file, open for reading.
class ReadFile {
 public:
  /// Throws FileError for a file that is missing, not a regular file, or not readable.
  explicit ReadFile(std::string path);
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&&) = delete;
  ~ReadFile();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Reads exactly `bytes` bytes at `offset`.  Throws FileError if the file ends before.
  void read(void* to, std::size_t bytes, std::uint64_t offset) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// Reads a whole file.  Throws FileError as ReadFile does, and for one of more than `most` bytes.
std::string read_file(const std::string& path, std::uint64_t most);
/// Calls f with each line of a file without its newline, and whether it has one, which the last may
/// lack.  FileError if the file cannot be read to its end.
void for_each_line(const std::string& path,
                   const std::function<void(const std::string& line, bool whole)>& f);

/// A file that appears under its name only when it is complete.  The bytes go to a temporary file
/// in the same folder, which commit() forces to disk and renames; without commit() it is removed,
/// and the old file stays.  A symbolic link is followed to its end, even to a file that does not
/// exist.  Throws FileError for a folder, a device, a pipe, a file to which this program prints,
/// and if writing fails.
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

  std::string path_;    ///< as given
  std::string target_;  ///< after following links
  std::string temporary_;
  int descriptor_ = -1;
};

/// Writes a whole file as an AtomicFile.
void write_file(const std::string& path, std::string_view content);

/// Call it before a long run that writes `path` at its end.  Checks that AtomicFile can write
/// `path`, that no file exists there unless `overwrite`, and that it is none of the input files, by
/// device and inode.  Throws FileError.  Skips inputs that are empty or do not exist.
void check_output(const std::string& path, bool overwrite,
                  const std::vector<std::string>& inputs = {});

/// The 64-bit XXH3 (xxHash) of bytes added in any number of parts.  It detects accidents, not
/// forgery.
class Checksum {
 public:
  Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  ~Checksum();

  void add(const void* data, std::size_t bytes);
  /// The checksum of all added bytes, as 16 hexadecimal digits.
  std::string digits() const;

 private:
  XXH3_state_s* state_;
};

}  // namespace xgrad::io
