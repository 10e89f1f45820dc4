#include "metrics.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/json.hpp>

namespace char_transformer {
namespace {

using xgrad::FileError;

/// Nothing for a line that is not a row.
std::optional<StepRecord> read_row(const std::string& line) {
  try {
    const xgrad::io::Json row = xgrad::io::parse_json(line);
    const auto* const step = row.find<std::uint64_t>("step");
    const auto loss = row.number("loss"), lr = row.number("lr"), norm = row.number("grad_norm"),
               ms = row.number("ms");
    if (step != nullptr && loss && lr && norm && ms)
      return StepRecord{.step = *step, .loss = *loss, .lr = *lr, .grad_norm = *norm, .ms = *ms};
  } catch (const xgrad::ValueError&) {
  }
  return std::nullopt;
}

std::string format_row(const StepRecord& r) {
  std::string row = fmt::format(
      R"({{"step": {}, "loss": {:.9g}, "lr": {:.9g}, "grad_norm": {:.9g}, "ms": {:.3f})", r.step,
      r.loss, r.lr, r.grad_norm, r.ms);
  if (r.val_loss)
    row += fmt::format(R"(, "val_loss": {:.9g})", *r.val_loss);
  return row + "}\n";
}

}  // namespace

Metrics::Metrics(std::string path, std::uint64_t steps) : path_(std::move(path)) {
  // A link would lead out of the folder, and a pipe would have no end.
  descriptor_ = ::open(path_.c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0)
    throw FileError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw FileError(fmt::format("{}: is not a regular file", path_));
  }
  std::ifstream file(path_, std::ios::binary);
  std::uint64_t begin = 0;
  std::array<char, 4096> buffer;  // no row is as long
  while (file.getline(buffer.data(), buffer.size()) && !file.eof()) {
    const std::string line(buffer.data(), static_cast<std::size_t>(file.gcount()) - 1);
    const std::optional<StepRecord> row = read_row(line);
    if (row && (row->step >= steps || (last_ && row->step <= last_->step)))
      break;
    if (row) {
      last_ = row;
      last_begin_ = begin;
      size_ = begin + line.size() + 1;
      milliseconds_ += row->ms;
    }
    begin += static_cast<std::uint64_t>(file.gcount());
  }
  if (!file.is_open() || file.bad()) {
    ::close(descriptor_);
    throw FileError(fmt::format("{}: cannot be read", path_));
  }
  if (static_cast<std::uint64_t>(status.st_size) > size_)
    cut(size_);
}

Metrics::~Metrics() { ::close(descriptor_); }

void Metrics::cut(std::uint64_t size) {
  size_ = size;
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0)
    throw FileError(fmt::format("{}: cannot be shortened: {}", path_, std::strerror(errno)));
}

std::optional<StepRecord> Metrics::last(std::uint64_t step) const {
  return last_ && last_->step == step ? last_ : std::nullopt;
}

/// Removes a half-written row.  False if that fails.
bool Metrics::mend() {
  torn_ = torn_ && ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0;
  return !torn_;
}

bool Metrics::write_waiting() {
  std::size_t done = 0;
  while (mend() && done < waiting_.size()) {
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
  if (torn_)
    return false;
  size_ += waiting_.size();
  waiting_.clear();
  unwritten_ = 0;
  return true;
}

bool Metrics::log(const StepRecord& record) {
  if (const auto before = last(record.step)) {
    size_ = last_begin_;
    torn_ = true;
    milliseconds_ -= before->ms;
  }
  last_.reset();
  waiting_ += format_row(record);
  ++unwritten_;
  milliseconds_ += record.ms;
  return write_waiting();
}

std::string Metrics::error() const {
  return fmt::format("{}: writing failed: {}", path_, std::strerror(error_));
}

void Metrics::sync() const { ::fsync(descriptor_); }

}  // namespace char_transformer
