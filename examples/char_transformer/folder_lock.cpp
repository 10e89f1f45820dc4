#include "folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <xgrad/autograd/error.hpp>

#include "output.hpp"

namespace char_transformer {
namespace {

/// Whether a path still names the file that was opened: its last holder may have removed it between
/// open() and flock().
bool names(const std::string& path, int descriptor) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
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

FolderLock::FolderLock(const std::string& folder) : path_(folder + "/lock") {
  for (;;) {
    descriptor_ =
        ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (descriptor_ < 0)
      throw xgrad::FileError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
    const bool locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    const int error = errno;
    if (locked && !names(path_, descriptor_)) {
      ::close(descriptor_);
      continue;
    }
    if (!locked && error == EWOULDBLOCK) {
      const std::string pid = holder(descriptor_);
      ::close(descriptor_);
      throw xgrad::FileError(fmt::format("{}: process{} is training in this folder", folder, pid));
    }
    if (!locked)
      warn(fmt::format("{}: cannot be locked ({}); see to it that no other process trains there",
                       folder, std::strerror(error)));
    break;
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  // Only the message of another process needs it.
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, pid.data(), pid.size(), 0) < 0)
    return;
}

void FolderLock::check() const {
  if (!names(path_, descriptor_))
    throw xgrad::FileError(fmt::format(
        "{}: is gone: the folder was moved, or another run may have begun in it", path_));
}

FolderLock::~FolderLock() {
  if (names(path_, descriptor_))
    ::unlink(path_.c_str());
  ::close(descriptor_);
}

}  // namespace char_transformer
