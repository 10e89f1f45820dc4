#include "run_dir.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <regex>
#include <string_view>
#include <system_error>
#include <utility>
#include <xgrad/io/file.hpp>
#include <xgrad/io/safetensors.hpp>
#include <xgrad/lm/pretrained.hpp>

#include "checkpoint_info.hpp"
#include "hints.hpp"
#include "output.hpp"
#include "runs/runs.hpp"

namespace program {
namespace {

namespace fs = std::filesystem;

/// The files that training writes besides checkpoints.
constexpr std::array<std::string_view, 8> runs_files = {
    "config.json", "metrics.jsonl", "samples.jsonl",       "environment.json",
    "trace.json",  "report.html",   "adapter_config.json", "adapter_model.safetensors"};

bool is_file_of_run(const std::string& name) {
  return is_checkpoint_name(name) || std::ranges::count(runs_files, name) > 0;
}

/// One more than the largest number in a name there.
unsigned next_number(const std::string& parent) {
  unsigned next = 0;
  for (const std::string& name : names_in(parent))
    if (name.size() < 9 && name.find_first_not_of("0123456789") == name.npos)
      next = std::max(next, static_cast<unsigned>(std::stoul(name)) + 1);
  return next;
}

}  // namespace

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    fail<FileError>("{}: the folder cannot be read: {}", folder, error.message());
  return names;
}

bool is_checkpoint_name(const std::string& name) {
  return name == checkpoint_name || name == best_name;
}

void check_no_file_of_run(const std::string& path) {
  std::error_code none;
  const fs::path target = fs::weakly_canonical(path, none), folder = target.parent_path();
  const std::string name = target.filename().string();
  if (name != "report.html" && is_file_of_run(name) && fs::exists(folder / "config.json", none) &&
      (fs::exists(folder / "metrics.jsonl", none) || checkpoint_in(folder.string())))
    fail<FileError>(
        "{}: is a file of the run in {}, which training alone writes: give it another name", path,
        folder.filename().string());
}

std::uint64_t step_of(const std::string& checkpoint) {
  std::uint64_t step = 0;
  try {
    const xgrad::io::SafetensorsFile file(checkpoint);
    if (const auto found = file.metadata().find("step"); found != file.metadata().end())
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), step);
  } catch (const FileError&) {
  }
  return step;
}

std::optional<std::string> checkpoint_in(const std::string& folder) {
  for (const char* const name : {checkpoint_name, best_name})
    if (std::error_code none; fs::exists(fs::path(folder) / name, none))
      return (fs::path(folder) / name).string();
  return std::nullopt;
}

std::string find_checkpoint(const std::string& path) {
  xgrad::lm::check_weights_kind(path);
  std::error_code none;
  if (const std::string hint = model_hint(path); !hint.empty())
    fail<FileError>("{}: no such file or folder{}", path, hint);
  if (!fs::is_directory(path, none))
    return path;
  if (auto found = checkpoint_in(path))
    return *found;
  fail<FileError>("{}: the folder holds no checkpoint{}", path,
                  runs::runs_in(path, checkpoint_name));
}

xgrad::io::Checkpoint read_checkpoint(const std::string& path) {
  try {
    return xgrad::io::load_checkpoint(path);
  } catch (const FileError& error) {
    const fs::path folder = fs::path(path).parent_path();
    for (const char* const name : {checkpoint_name, best_name})
      if (const auto step = step_of((folder / name).string());
          step > 0 && name != fs::path(path).filename())
        fail<FileError>("{}\nIn the same folder is {} (after {} steps).", error.what(), name, step);
    throw;
  }
}

JsonLines::JsonLines(std::string path) : path_(std::move(path)) {
  // A link would lead out of the folder, and a pipe would have no end.
  descriptor_ = ::open(path_.c_str(),
                       O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  const int error = errno;
  if (std::error_code none; descriptor_ < 0 || !fs::is_regular_file(path_, none)) {
    ::close(descriptor_);
    fail<FileError>("{}: cannot be written: {}", path_,
                    descriptor_ < 0 ? std::strerror(error) : "not a regular file");
  }
}

JsonLines::JsonLines(std::string path, std::uint64_t end) : JsonLines(std::move(path)) {
  std::uint64_t at = 0;
  xgrad::io::for_each_line(path_, [&](const std::string& line, bool whole) {
    if (!whole)
      return;
    at += line.size() + 1;
    xgrad::io::Json row;
    try {
      row = xgrad::io::parse_json(line);
    } catch (const ValueError&) {  // no row: skipped, or the end of all
    }
    const auto* const step = row.find<std::uint64_t>("step");
    if (dropped > 0) {
      ++dropped;
    } else if (step != nullptr && (*step >= end || *step < next)) {
      dropped = 1;
      if (*step == end)
        cut = std::move(row);
    } else if (step != nullptr && (row.number("loss") || row.find("text") != nullptr)) {
      next = *step + 1;
      size_ = at;
    }
  });
}

void JsonLines::cut_off() {
  if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
    fail<FileError>("{}: cannot be cut off: {}", path_, std::strerror(errno));
}

JsonLines::~JsonLines() { ::close(descriptor_); }

void JsonLines::add(const std::string& row) {
  const std::string line = row + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t put = ::write(descriptor_, line.data() + done, line.size() - done);
    if (put < 0 && errno != EINTR) {
      const int error = errno;
      cut_off();
      fail<FileError>("{}: writing failed: {}", path_, std::strerror(error));
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(put, 0));
  }
  size_ += line.size();
}

void JsonLines::sync() const {
  if (::fsync(descriptor_) != 0 && errno != EINVAL)  // EINVAL: not a file of a disk
    fail<FileError>("{}: writing failed: {}", path_, std::strerror(errno));
}

RunDir::RunDir(std::string path, Holds holds) : path_(std::move(path)), holds_(holds) {
  if (holds_ == Holds::run)
    return;
  // The folder, or its nearest existing ancestor.
  std::error_code none;
  const fs::path wanted = path_.empty() ? "runs" : path_;
  fs::path there = wanted;
  while (!there.empty() && !fs::exists(there, none))
    there = there.parent_path();
  there = there.empty() ? "." : there;
  const bool is_file = !fs::is_directory(there, none);
  if (is_file || ::access(there.c_str(), W_OK | X_OK) != 0)
    fail<FileError>("{}: {} is {}", wanted.string(), there.string(),
                    is_file ? "a file, not a folder" : "no folder that can be written");
  check();
}

/// FileError if the folder holds more than it may.
void RunDir::check() const {
  std::error_code none;
  const bool configured = fs::exists(fs::path(path_) / "config.json", none);
  for (const std::string& name : names_in(path_)) {
    const fs::path path = fs::path(path_) / name;
    if (!is_file_of_run(name))
      continue;
    if (fs::is_symlink(path, none))  // another user may have made it
      fail<FileError>("{}: is a link, and a run writes into its own folder only", path.string());
    if (name.ends_with(".jsonl") && fs::is_regular_file(path, none) &&
        fs::hard_link_count(path, none) > 1)  // rows are appended in place
      fail<FileError>(
          "{}: has another name as well (a hard link), whose rows would change: copy it",
          path.string());
    // A report belongs to a finished run, and without a configuration there is no run; its rows
    // are empty if a kill came before the configuration.
    if (holds_ == Holds::nothing ||
        (holds_ == Holds::leftovers &&
         (is_checkpoint_name(name) || name == "report.html" || name.starts_with("adapter_") ||
          (!configured && !fs::is_empty(path, none)))))
      fail<FileError>(
          "{}: the folder holds a run already ({}); {}name another", path_, name,
          checkpoint_in(path_) ? fmt::format("--resume {} continues it, or ", path_)
          : fs::exists(fs::path(path_) / "adapter_model.safetensors", none)
              ? fmt::format("its adapters are there, but no checkpoint to resume: --init-from {} "
                            "trains them further; ",
                            path_)
              : "");
  }
}

void RunDir::check_input(const std::string& path) const {
  std::error_code none;
  for (const std::string_view name : runs_files)
    if (!path.empty() && fs::equivalent(path, fs::path(path_) / name, none))
      fail<FileError>("{}: is an input, and a run in {} would overwrite it: name another folder",
                      path, path_);
}

/// Makes a folder and its ancestors, and records those it made.
void RunDir::make_folder(const std::string& path) {
  std::error_code error, none;
  if (const fs::path parent = fs::path(path).parent_path();
      !parent.empty() && !fs::exists(parent, none))
    make_folder(parent.string());
  if (fs::create_directory(path, error))
    made_.push_back(path);
  if (error)
    fail<FileError>("{}: the folder cannot be made: {}", path, error.message());
}

void RunDir::lock() {
  // Another run may take the same number at the same moment.
  for (unsigned number = path_.empty() ? next_number("runs") : 0; path_.empty(); ++number) {
    const std::string path = fmt::format("runs/{:03}", number);
    make_folder(path);
    if (made_.size() > 0 && made_.back() == path)
      path_ = path;
  }
  make_folder(path_);
  handle_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle_ < 0)
    fail<FileError>("{}: cannot be opened: {}", path_, std::strerror(errno));
  if (::flock(handle_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    unlock();
    if (error == EWOULDBLOCK)
      fail<FileError>("{}: another process is training in this folder", path_);
    fail<FileError>("{}: cannot be locked: {}; name a folder on another file system", path_,
                    std::strerror(error));
  }
  check();  // another process may have begun and ended since the first check
  const std::string config = path_ + "/config.json";
  if (std::error_code none; fs::exists(config, none) && !read_object(config).number("block_size"))
    fail<FileError>(
        "{}: is no run's configuration, and a run would overwrite it: name another folder", config);
}

void RunDir::unlock() { ::close(std::exchange(handle_, -1)); }

/// The path of a file, which is recorded if it does not exist yet.
std::string RunDir::noted(const char* name) {
  std::string path = path_ + "/" + name;
  std::error_code none;
  if (!fs::exists(fs::symlink_status(path, none)))
    made_.push_back(path);
  return path;
}

std::string RunDir::open(const std::string& config, const std::string& environment,
                         std::uint64_t steps, std::uint64_t rows) {
  std::error_code none;
  std::vector<std::string> names;
  try {
    if (handle_ < 0)
      lock();
    names = names_in(path_);
    // Temporary files that AtomicFile leaves if its process is killed.
    static const std::regex temporary(R"((.*)\.\d+\.\d+\.tmp)");
    for (const std::string& name : names)
      if (std::smatch match; std::regex_match(name, match, temporary) && is_file_of_run(match[1]))
        fs::remove(path_ + "/" + name, none);
    metrics_.emplace(noted("metrics.jsonl"), rows);
    samples_.emplace(noted("samples.jsonl"), steps + 1);
    for (const auto& [name, text] :
         {std::pair("config.json", config), {"environment.json", environment}})
      xgrad::io::write_file(noted(name), text + "\n");
    metrics_->cut_off();
    samples_->cut_off();
  } catch (...) {
    metrics_.reset();
    samples_.reset();
    for (auto path = made_.rbegin(); path != made_.rend(); ++path)  // folders only when empty
      fs::remove(*path, none);
    unlock();
    throw;
  }
  std::vector<std::string> lost;
  if (metrics_->next < rows)
    lost.push_back(fmt::format("metrics.jsonl lacks the rows from step {} on", metrics_->next));
  if (const std::size_t later = metrics_->dropped - (metrics_->dropped > 0 && rows < steps))
    lost.push_back(
        fmt::format("{} of later steps went from metrics.jsonl", format_count(later, "row")));
  for (const std::string& name : names)
    if (is_checkpoint_name(name) && step_of(path_ + "/" + name) > steps)
      lost.push_back(fmt::format("{} is of a later step; the first save removes it", name));
  return fmt::format("{}", fmt::join(lost, "; "));
}

void RunDir::tidy(std::uint64_t step) const {
  std::error_code none;
  for (const char* const name : {checkpoint_name, best_name})
    if (const std::string path = path_ + "/" + name; step_of(path) > step)
      fs::remove(path, none);
}

}  // namespace program
