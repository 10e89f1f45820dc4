#pragma once
// Files on disk: reading at an offset, and writing so that nothing half-written can ever be seen.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

/// A file that appears under its name only when it is complete.  The bytes go to a file beside it,
/// which commit() forces to disk and renames; without commit() it is removed, and what had the name
/// before stays as it was.  Of a symbolic link that has the name, commit() replaces the link: what
/// it leads to is not written, wherever that is.  Throws FileError for what cannot be written,
/// devices and pipes among it.
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

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace xgrad::io
