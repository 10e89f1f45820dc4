#include "rows.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/json.hpp>

namespace char_transformer {

using xgrad::FileError;

Rows::Rows(std::string path, std::uint64_t end) : path_(std::move(path)) {
  // A link would lead out of the folder, and a pipe would have no end.
  descriptor_ = ::open(path_.c_str(),
                       O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (descriptor_ < 0)
    throw FileError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  try {
    read(end);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

Rows::~Rows() { ::close(descriptor_); }

void Rows::read(std::uint64_t end) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path_, none))
    throw FileError(fmt::format("{}: is not a regular file", path_));
  std::ifstream file(path_, std::ios::binary);
  std::uint64_t at = 0, least = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    at += line.size() + 1;
    xgrad::io::Json row;
    try {
      row = xgrad::io::parse_json(line);
    } catch (const xgrad::ValueError&) {  // no row: passed over, or the end of all
    }
    const auto* const step = row.find<std::uint64_t>("step");
    if (dropped_ > 0) {
      ++dropped_;
    } else if (step != nullptr && (*step >= end || *step < least)) {
      cut_ = *step == end ? line : "";
      dropped_ = 1;
    } else if (step != nullptr && (row.number("loss") || row.find("text") != nullptr)) {
      milliseconds_ += row.number("ms").value_or(0);
      least = *step + 1;
      size_ = at;
      ++kept_;
    }
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
    throw FileError(fmt::format("{}: cannot be shortened: {}", path_, std::strerror(errno)));
}

bool Rows::add(const std::string& row) {
  waiting_ += row + "\n";
  ++unwritten_;
  for (std::size_t done = 0; done < waiting_.size();) {
    const ssize_t put = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
    if (put < 0 && errno != EINTR) {
      error_ = errno;
      if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)  // so that rows are whole
        error_ = errno;
      return false;
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(put, 0));
  }
  size_ += waiting_.size();
  waiting_.clear();
  unwritten_ = 0;
  return true;
}

std::string Rows::error() const {
  return fmt::format("{}: writing failed: {}", path_, std::strerror(error_));
}

void Rows::sync() const { ::fsync(descriptor_); }

}  // namespace char_transformer
