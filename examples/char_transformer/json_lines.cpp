#include "json_lines.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>
#include <xgrad/autograd/error.hpp>

namespace char_transformer {
namespace {

using xgrad::FileError;

constexpr std::size_t longest_row = 1 << 16;

}  // namespace

JsonLines::JsonLines(std::string path, std::uint64_t end, const StepOf& step_of,
                     const std::function<void()>& kept)
    : path_(std::move(path)) {
  // A link would lead out of the folder, and a pipe would have no end.
  descriptor_ = ::open(path_.c_str(),
                       O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (descriptor_ < 0)
    throw FileError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  try {
    read(end, step_of, kept);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

void JsonLines::read(std::uint64_t end, const StepOf& step_of, const std::function<void()>& kept) {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0)
    throw FileError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  if (!S_ISREG(status.st_mode))
    throw FileError(fmt::format("{}: is not a regular file", path_));
  std::ifstream file(path_, std::ios::binary);
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> last;
  std::vector<char> buffer(longest_row);
  while (file.getline(buffer.data(), static_cast<std::streamsize>(buffer.size())) && !file.eof()) {
    const std::string line(buffer.data(), static_cast<std::size_t>(file.gcount()) - 1);
    if (const auto step = step_of(line)) {
      if (*step >= end || (last && *step <= *last))
        break;
      kept();
      last = step;
      last_begin_ = begin;
      size_ = begin + line.size() + 1;
    }
    begin += static_cast<std::uint64_t>(file.gcount());
  }
  if (!file.is_open() || file.bad())
    throw FileError(fmt::format("{}: cannot be read", path_));
  if (static_cast<std::uint64_t>(status.st_size) > size_ &&
      ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
    throw FileError(fmt::format("{}: cannot be shortened: {}", path_, std::strerror(errno)));
}

JsonLines::~JsonLines() { ::close(descriptor_); }

void JsonLines::replace_last() {
  size_ = last_begin_;
  torn_ = true;
}

/// Removes what follows the whole rows.  False if that fails.
bool JsonLines::mend() {
  torn_ = torn_ && ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0;
  return !torn_;
}

/// Whether what waits can be written whole.  Asked before it is: a reader could see a part before
/// that is taken back.
bool JsonLines::has_room() {
  const std::uint64_t end = size_ + waiting_.size();
  rlimit most{};
  if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && end > most.rlim_cur) {
    error_ = EFBIG;
    return false;
  }
#ifdef FALLOC_FL_KEEP_SIZE  // not all file systems can; within a page nothing is written in part
  constexpr std::uint64_t page = 4096;
  if (size_ / page != (end - 1) / page &&
      ::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_),
                  static_cast<off_t>(waiting_.size())) != 0 &&
      (errno == ENOSPC || errno == EDQUOT)) {
    error_ = errno;
    return false;
  }
#endif
  return true;
}

bool JsonLines::write_waiting() {
  if (!mend() || !has_room())
    return false;
  std::size_t done = 0;
  while (done < waiting_.size()) {
    const ssize_t put = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0) {
      error_ = errno;
      torn_ = done > 0;
      mend();
      return false;
    }
    done += static_cast<std::size_t>(put);
  }
  size_ += waiting_.size();
  waiting_.clear();
  unwritten_ = 0;
  return true;
}

bool JsonLines::add(const std::string& row) {
  waiting_ += row + "\n";
  ++unwritten_;
  return write_waiting();
}

std::string JsonLines::error() const {
  return fmt::format("{}: writing failed: {}", path_, std::strerror(error_));
}

std::string JsonLines::all() const {
  std::string rows(size_, '\0');
  std::size_t done = 0;
  while (done < rows.size()) {
    const ssize_t got =
        ::pread(descriptor_, &rows[done], rows.size() - done, static_cast<off_t>(done));
    if (got == 0 || (got < 0 && errno != EINTR))
      return "";
    done += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  return rows + waiting_;
}

void JsonLines::sync() const { ::fsync(descriptor_); }

}  // namespace char_transformer
