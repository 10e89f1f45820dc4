#include "folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <xgrad/autograd/error.hpp>

#include "output.hpp"

namespace char_transformer {
namespace {

/// Whether a path still names what was opened.
bool names(const std::string& path, int descriptor) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/// " 123", if that is what the file says.
std::string holder(int descriptor) {
  std::array<char, 20> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t i = 0; i < got && text[static_cast<std::size_t>(i)] >= '0' &&
                      text[static_cast<std::size_t>(i)] <= '9';
       ++i)
    digits += text[static_cast<std::size_t>(i)];
  return digits.empty() ? "" : " " + digits;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : folder_(folder) {
  try {
    take();
  } catch (...) {
    close();
    throw;
  }
}

void FolderLock::take() {
  handle_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle_ < 0)
    throw xgrad::FileError(fmt::format("{}: cannot be opened: {}", folder_, std::strerror(errno)));
  for (;;) {
    descriptor_ =
        ::open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (descriptor_ < 0)
      throw xgrad::FileError(
          fmt::format("{}: cannot be written: {}", path(), std::strerror(errno)));
    const bool locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    const int error = errno;
    if (locked && !holds()) {  // its last holder removed it before flock()
      ::close(std::exchange(descriptor_, -1));
      continue;
    }
    if (!locked && error == EWOULDBLOCK)
      throw xgrad::FileError(
          fmt::format("{}: process{} is training in this folder", folder_, holder(descriptor_)));
    if (!locked)
      warn(fmt::format("{}: cannot be locked ({}); see to it that no other process trains there",
                       folder_, std::strerror(error)));
    break;
  }
  check_is_lock();
  const std::string pid = fmt::format("{}\n", ::getpid());
  // Only the message of another process needs it.
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, pid.data(), pid.size(), 0) < 0)
    return;
}

/// Throws if what lies there is not what a lock writes, but somebody's file.
void FolderLock::check_is_lock() const {
  struct stat status {};
  std::array<char, 32> text{};
  const ssize_t n = ::pread(descriptor_, text.data(), text.size(), 0);
  const bool is_number = n >= 0 && std::all_of(text.begin(), text.begin() + n, [](char c) {
                           return (c >= '0' && c <= '9') || c == '\n';
                         });
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1 ||
      !is_number || n == static_cast<ssize_t>(text.size()))
    throw xgrad::FileError(
        fmt::format("{}: is not a run's lock, and training would write over it: move it, or name "
                    "another folder",
                    path()));
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

bool FolderLock::holds() const { return names(path(), descriptor_); }

void FolderLock::close() const {
  for (const int descriptor : {handle_, descriptor_})
    if (descriptor >= 0)
      ::close(descriptor);
}

FolderLock::~FolderLock() {
  if (place() && holds())
    ::unlink(path().c_str());
  close();
}

}  // namespace char_transformer
