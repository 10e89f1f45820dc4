#include "file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <fmt/format.h>

#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>
#include "../autograd/fail.hpp"

namespace xgrad::io {

namespace {

/// Some systems refuse a single read or write of 2 GiB and more.
constexpr std::size_t most_at_once = std::size_t{1} << 30;

/// Makes a completed rename survive a power cut.  Some file systems cannot do that; the rename is
/// atomic all the same.
void sync_folder(const char* folder) {
  const int descriptor = ::open(folder, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  ::fsync(descriptor);
  ::close(descriptor);
}

bool same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

[[noreturn]] void cannot_be_written(const std::string& path, const char* why) {
  fail<FileError>("{}: cannot be written: {}", path, why);
}

/// The file to which a path leads, safe to replace by a rename.  Throws FileError.
std::string target_of(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path target = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(target, error)); ++links) {
    const fs::path next = fs::read_symlink(target, error);
    if (links == 40 || error)  // Linux's limit
      cannot_be_written(path, std::strerror(error ? error.value() : ELOOP));
    target = target.parent_path() / next;
  }
  struct stat there{}, found{}, stream{};
  if (::stat(path.c_str(), &there) != 0)
    return target.string();
  if (!S_ISREG(there.st_mode))
    cannot_be_written(path, "not a regular file");
  if (::lstat(target.c_str(), &found) != 0 || !same(there, found))  // a link of /proc
    cannot_be_written(path, "no name leads to it");
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO})
    if (::fstat(descriptor, &stream) == 0 && same(there, stream))
      cannot_be_written(path, "this program's output goes there");
  return target.string();
}

}  // namespace

ReadFile::ReadFile(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0)
    fail<FileError>("{}: cannot be opened: {}", path_, std::strerror(errno));
  struct stat status{};
  const bool regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(descriptor_);
    fail<FileError>("{}: is not a regular file", path_);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

ReadFile::ReadFile(ReadFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

ReadFile::~ReadFile() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

void ReadFile::read(void* to, std::size_t bytes, std::uint64_t offset) const {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got =
        ::pread(descriptor_, at, std::min(bytes, most_at_once), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      fail<FileError>("{}: reading at byte {} failed: {}", path_, offset, std::strerror(errno));
    if (got == 0)
      fail<FileError>("{}: the file ends at byte {}, {} before it should", path_, offset,
                      counted(bytes, "byte", "bytes"));
    at += got;
    bytes -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
}

std::string read_file(const std::string& path, std::uint64_t most) {
  const ReadFile file(path);
  check<FileError>(file.size() <= most, "{}: has {} bytes; at most {} are read", path, file.size(),
                   most);
  std::string bytes(file.size(), '\0');
  file.read(bytes.data(), bytes.size(), 0);
  return bytes;
}

void for_each_line(const std::string& path,
                   const std::function<void(const std::string& line, bool whole)>& f) {
  const ReadFile file(path);
  std::string line, part;
  for (std::uint64_t at = 0; at < file.size(); at += part.size()) {
    part.resize(std::min<std::uint64_t>(65536, file.size() - at));
    file.read(part.data(), part.size(), at);
    std::size_t begin = 0;
    for (std::size_t end; (end = part.find('\n', begin)) != part.npos; begin = end + 1) {
      f(line.append(part, begin, end - begin), true);
      line.clear();
    }
    line.append(part, begin);
  }
  if (!line.empty())
    f(line, false);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), target_(target_of(path_)) {
  static std::atomic<unsigned> number{0};
  do {
    temporary_ = fmt::format("{}.{}.{}.tmp", target_, ::getpid(), number++);
    // O_EXCL: an existing file, or a link that leads elsewhere, is never written to.  0666 is
    // usual; the user's umask removes its bits.
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0)
    cannot_be_written(path_, std::strerror(errno));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
  if (!temporary_.empty())
    ::unlink(temporary_.c_str());
}

void AtomicFile::failed(const char* what) const {
  fail<FileError>("{}: {} failed: {}", path_, what, std::strerror(errno));
}

void AtomicFile::write(const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = ::write(descriptor_, at, std::min(bytes, most_at_once));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      failed("writing");
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0)
    failed("writing to disk");
  const std::filesystem::path folder = std::filesystem::path(target_).parent_path();
  // The descriptor is closed whatever close() returns.
  if (::close(std::exchange(descriptor_, -1)) != 0)
    failed("closing");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    failed("renaming");
  temporary_.clear();
  sync_folder(folder.empty() ? "." : folder.c_str());
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void check_output(const std::string& path, bool overwrite, const std::vector<std::string>& inputs) {
  struct stat there{}, input{};
  if (::lstat(path.c_str(), &there) != 0)  // true for a broken link as well
    return;
  if (::stat(path.c_str(), &there) == 0)
    for (const std::string& read : inputs)
      check<FileError>(::stat(read.c_str(), &input) != 0 || !same(there, input),
                       "{}: is the same file as the input {}: give it another name", path, read);
  target_of(path);
  check<FileError>(overwrite,
                   "{}: exists already; --overwrite replaces it, or give it another name", path);
}

Checksum::Checksum() : state_(XXH3_createState()) {
  if (state_ == nullptr)
    throw std::bad_alloc();
  XXH3_64bits_reset(state_);
}
Checksum::~Checksum() { XXH3_freeState(state_); }

void Checksum::add(const void* data, std::size_t bytes) {
  if (bytes > 0)
    XXH3_64bits_update(state_, data, bytes);
}

std::string Checksum::digits() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_)); }

}  // namespace xgrad::io
