// What a run's folder holds while it runs: its lock, and files to which rows are added.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <xgrad/autograd/error.hpp>

#include "output.hpp"
#include "run_dir.hpp"

namespace char_transformer {
namespace {

using xgrad::FileError;

constexpr std::size_t longest_row = 1 << 16;

/// Whether a path still names what was opened.
bool names(const std::string& path, int descriptor) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

[[noreturn]] void failed(const std::string& path, const char* what, int error) {
  throw FileError(fmt::format("{}: cannot be {}: {}", path, what, std::strerror(error)));
}

/// What the file `lock` says, a process's number; FileError for what is not what a lock writes, but
/// somebody's file.
std::string holder(const std::string& path, int descriptor) {
  struct stat status {};
  std::array<char, 32> text{};
  const ssize_t n = ::pread(descriptor, text.data(), text.size(), 0);
  const std::string_view said(text.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1 ||
      n < 0 || said.size() == text.size() ||
      said.find_first_not_of("0123456789\n") != std::string_view::npos)
    throw FileError(
        fmt::format("{}: is not a run's lock, and training would write over it: move it, or name "
                    "another folder",
                    path));
  return std::string(said.substr(0, said.find('\n')));
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : folder_(folder) {
  try {
    take();
  } catch (...) {
    ::close(descriptor_);
    ::close(handle_);
    throw;
  }
}

void FolderLock::take() {
  handle_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle_ < 0)
    failed(folder_, "opened", errno);
  const std::string path = folder_ + "/lock";
  for (;;) {
    descriptor_ =
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (descriptor_ < 0)
      failed(path, "written", errno);
    const bool locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    const int error = errno;
    if (locked && !holds()) {  // its last holder removed it before flock()
      ::close(std::exchange(descriptor_, -1));
      continue;
    }
    const std::string process = holder(path, descriptor_);
    if (!locked && error == EWOULDBLOCK)
      throw FileError(fmt::format("{}: process{} is training in this folder", folder_,
                                  process.empty() ? "" : " " + process));
    if (!locked)
      warn(fmt::format("{}: cannot be locked ({}); see to it that no other process trains there",
                       folder_, std::strerror(error)));
    break;
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  // Only the message of another process needs it.
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, pid.data(), pid.size(), 0) < 0)
    return;
}

std::string FolderLock::inside() const {
  const std::string path = fmt::format("/proc/self/fd/{}", handle_);
  return names(path, handle_) ? path : folder_;
}

std::optional<std::string> FolderLock::place() {
  if (names(folder_, handle_))
    return folder_;
  std::error_code none;  // on Linux; elsewhere it is as if removed
  const auto now = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", handle_), none);
  if (none || !names(now.string(), handle_))
    return std::nullopt;
  return folder_ = now.string();
}

bool FolderLock::holds() const { return names(folder_ + "/lock", descriptor_); }

FolderLock::~FolderLock() {
  if (place() && holds())
    ::unlink((folder_ + "/lock").c_str());
  ::close(descriptor_);
  ::close(handle_);
}

Rows::Rows(std::string path, std::uint64_t end) : path_(std::move(path)) {
  // A link would lead out of the folder, and a pipe would have no end.
  descriptor_ = ::open(path_.c_str(),
                       O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (descriptor_ < 0)
    failed(path_, "written", errno);
  try {
    read(end);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

void Rows::read(std::uint64_t end) {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode))
    throw FileError(fmt::format("{}: is not a regular file", path_));
  std::ifstream file(path_, std::ios::binary);
  if (!file)
    failed(path_, "read", errno);
  std::uint64_t begin = 0;
  bool whole = true;  // up to here
  std::vector<char> buffer(longest_row);
  while (file.getline(buffer.data(), static_cast<std::streamsize>(buffer.size())) && !file.eof()) {
    const auto length = static_cast<std::uint64_t>(file.gcount());
    xgrad::io::Json row;
    try {
      row = xgrad::io::parse_json({buffer.data(), length - 1});
    } catch (const xgrad::ValueError&) {
    }
    const auto* const step = row.find<std::uint64_t>("step");
    const auto* const before = last_.find<std::uint64_t>("step");
    const bool complete = row.number("loss").has_value() || row.find("text") != nullptr;
    whole = whole && (step == nullptr || !complete ||
                      (*step < end && (before == nullptr || *step > *before)));
    if (step != nullptr && complete && whole) {
      milliseconds_ += row.number("ms").value_or(0);
      last_ = std::move(row);
      last_begin_ = begin;
      size_ = begin + length;
      ++kept_;
    } else if (!whole) {
      ++dropped_;
    }
    begin += length;
  }
  if (static_cast<std::uint64_t>(status.st_size) > size_ &&
      ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
    failed(path_, "shortened", errno);
}

Rows::~Rows() { ::close(descriptor_); }

/// Whether what waits can be written whole.  Asked before it is: a reader could see a part before
/// that is taken back.
bool Rows::has_room() {
  constexpr std::uint64_t page = 4096;  // within one nothing is written in part
  const std::uint64_t end = size_ + waiting_.size();
  rlimit most{};
  error_ = ::getrlimit(RLIMIT_FSIZE, &most) == 0 && end > most.rlim_cur ? EFBIG : 0;
#ifdef FALLOC_FL_KEEP_SIZE  // not all file systems can
  if (error_ == 0 && size_ / page != (end - 1) / page &&
      ::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_),
                  static_cast<off_t>(waiting_.size())) != 0)
    error_ = errno == ENOSPC || errno == EDQUOT ? errno : 0;
#endif
  return error_ == 0;
}

bool Rows::write_waiting() {
  torn_ = torn_ && ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0;
  if (torn_ || !has_room())
    return false;
  for (std::size_t done = 0; done < waiting_.size();) {
    const ssize_t put = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
    if (put < 0 && errno != EINTR) {
      error_ = errno;
      torn_ = ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0;
      return false;
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(put, 0));
  }
  size_ += waiting_.size();
  waiting_.clear();
  unwritten_ = 0;
  return true;
}

bool Rows::add(const std::string& row, std::uint64_t step) {
  if (const auto* const before = last_.find<std::uint64_t>("step");
      before != nullptr && *before == step) {
    milliseconds_ -= last_.number("ms").value_or(0);
    size_ = last_begin_;
    torn_ = true;
  }
  last_ = nullptr;
  waiting_ += row + "\n";
  ++unwritten_;
  return write_waiting();
}

std::string Rows::error() const {
  return fmt::format("{}: writing failed: {}", path_, std::strerror(error_));
}

std::string Rows::all() const {
  std::string rows(size_, '\0');
  const ssize_t got = ::pread(descriptor_, rows.data(), rows.size(), 0);
  return got == static_cast<ssize_t>(rows.size()) ? rows + waiting_ : "";
}

void Rows::sync() const { ::fsync(descriptor_); }

}  // namespace char_transformer
