#include "run_dir.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string_view>
#include <system_error>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/safetensors.hpp>

#include "command.hpp"
#include "output.hpp"

namespace char_transformer {
namespace {

namespace fs = std::filesystem;
using xgrad::FileError;

/// What training writes beside checkpoints.
constexpr std::array<std::string_view, 6> runs_files = {"config.json",   "metrics.jsonl",
                                                        "samples.jsonl", "environment.json",
                                                        "trace.json",    "report.html"};

bool is_file_of_run(const std::string& name) {
  return is_checkpoint_name(name) || std::ranges::count(runs_files, name) > 0;
}

[[noreturn]] void failed(const std::string& path, const char* what) {
  throw FileError(fmt::format("{}: cannot be {}: {}", path, what, std::strerror(errno)));
}

std::optional<std::uint64_t> step_in(const std::string& name) {
  static const std::regex pattern(R"(checkpoint-(\d{8,18})\.safetensors)");
  std::smatch match;
  if (!std::regex_match(name, match, pattern))
    return std::nullopt;
  return std::stoull(match[1]);
}

/// The names in a folder; none if it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    names.push_back(entry.path().filename().string());
  return names;
}

/// Whether a path still names what was opened.
bool is_at(const std::string& path, int descriptor) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

std::string next_numbered(const std::string& parent) {
  unsigned next = 0;
  for (const std::string& name : names_in(parent))
    if (name.size() < 9 && name.find_first_not_of("0123456789") == name.npos)
      next = std::max(next, static_cast<unsigned>(std::stoul(name)) + 1);
  return fmt::format("{}/{:03}", parent, next);
}

}  // namespace

bool is_checkpoint_name(const std::string& name) {
  return name == checkpoint_name || name == best_name || step_in(name);
}

void check_no_file_of_run(const std::string& path) {
  std::error_code none;
  const fs::path target = fs::weakly_canonical(path, none), folder = target.parent_path();
  const std::string name = target.filename().string();
  if (name != "report.html" && is_file_of_run(name) && fs::exists(folder / "config.json", none) &&
      (fs::exists(folder / "metrics.jsonl", none) || checkpoint_in(folder.string())))
    throw FileError(fmt::format(
        "{}: is a file of the run in {}, which training alone writes: give it another name", path,
        folder.filename().string()));
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
    if (fs::exists(fs::path(folder) / name))
      return (fs::path(folder) / name).string();
  std::optional<std::pair<std::uint64_t, std::string>> latest;
  for (const std::string& name : names_in(folder))
    if (const auto step = step_in(name); step && (!latest || *step > latest->first))
      latest = {*step, (fs::path(folder) / name).string()};
  return latest ? std::optional(latest->second) : std::nullopt;
}

std::string find_checkpoint(const std::string& path) {
  std::error_code none;
  if (!fs::is_directory(path, none))
    return path;
  if (auto found = checkpoint_in(path))
    return *found;
  throw FileError(fmt::format("{}: the folder holds no checkpoint", path));
}

RunDir::RunDir(std::string path, Holds holds) : path_(std::move(path)), holds_(holds) {
  if (holds_ == Holds::run)
    return;
  // What is there already, or the nearest folder above.
  std::error_code none;
  const fs::path wanted = path_.empty() ? "runs" : path_;
  fs::path there = wanted;
  while (!there.empty() && !fs::exists(there, none))
    there = there.parent_path();
  if (there.empty())
    there = ".";
  if (!fs::is_directory(there, none) || ::access(there.c_str(), W_OK | X_OK) != 0)
    throw FileError(fmt::format(
        "{}: the folder cannot be {}: {} is no folder that can be written", wanted.string(),
        fs::is_directory(wanted, none) ? "written" : "made", there.string()));
  check();
}

/// FileError if the folder holds more than it may.
void RunDir::check() const {
  for (const std::string& name : names_in(path_)) {
    const fs::path path = fs::path(path_) / name;
    std::error_code none;
    if (!is_file_of_run(name))
      continue;
    if (fs::is_symlink(path, none))  // somebody else may have made it
      throw FileError(
          fmt::format("{}: is a link, and a run writes into its own folder only", path.string()));
    if (name.ends_with(".jsonl") && fs::is_regular_file(path, none) &&
        fs::hard_link_count(path, none) > 1)  // rows are added in place
      throw FileError(fmt::format(
          "{}: has another name as well (a hard link), whose rows would change: copy it",
          path.string()));
    // A report is of a run that ended, and without its configuration nothing is a run's.
    if (holds_ == Holds::nothing ||
        (holds_ == Holds::leftovers && (is_checkpoint_name(name) || name == "report.html" ||
                                        !fs::exists(fs::path(path_) / "config.json", none))))
      throw FileError(fmt::format(
          "{}: the folder holds a run already ({}); {}name another", path_, name,
          checkpoint_in(path_) ? fmt::format("--resume {} goes on with it, or ", path_) : ""));
  }
}

void RunDir::check_input(const std::string& path) const {
  std::error_code none;
  for (const std::string_view name : runs_files)
    if (!path.empty() && fs::equivalent(path, fs::path(path_) / name, none))
      throw FileError(fmt::format(
          "{}: is read, and a run in {} would write over it: name another folder", path, path_));
}

/// Makes a folder, and those around it, and notes what was made; false if it was there already.
bool RunDir::make_folder(const std::string& path) {
  std::error_code error, none;
  if (const fs::path parent = fs::path(path).parent_path();
      !parent.empty() && !fs::exists(parent, none))
    make_folder(parent.string());
  const bool is_new = fs::create_directory(path, error);
  if (error)
    throw FileError(fmt::format("{}: the folder cannot be made: {}", path, error.message()));
  if (is_new)
    made_.push_back(path);
  return is_new;
}

void RunDir::lock() {
  while (path_.empty()) {  // another run may take the same number in the same moment
    const std::string path = next_numbered("runs");
    if (make_folder(path))
      path_ = path;
  }
  make_folder(path_);
  handle_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle_ < 0)
    failed(path_, "opened");
  const std::string path = path_ + "/lock";
  bool locked = true;
  do {
    ::close(std::exchange(
        lock_, ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666)));
    if (lock_ < 0)
      failed(path, "written");
    locked = ::flock(lock_, LOCK_EX | LOCK_NB) == 0;
  } while (locked && !holds_lock());  // its last holder removed it before flock()
  const int error = errno;

  // A process's number, and nothing else.
  struct stat status {};
  std::array<char, 32> text{};
  const ssize_t n = ::pread(lock_, text.data(), text.size(), 0);
  const std::string said(text.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  std::string refused;
  if (::fstat(lock_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1 || n < 0 ||
      said.size() == text.size() || said.find_first_not_of("0123456789\n") != said.npos)
    refused = path +
              ": is not a run's lock, and training would write over it: move it, or name another "
              "folder";
  else if (!locked && error == EWOULDBLOCK)
    refused = fmt::format("{}: process {} is training in this folder", path_,
                          said.substr(0, said.find('\n')));
  if (!refused.empty()) {
    ::close(std::exchange(lock_, -1));
    throw FileError(refused);
  }
  if (!locked)
    warn(fmt::format("{}: cannot be locked ({}); see to it that no other process trains there",
                     path_, std::strerror(error)));
  const std::string process = fmt::format("{}\n", ::getpid());
  if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, process.data(), process.size(), 0) < 0)
    errno = 0;  // only the message of another process needs it
  check();      // since it was looked at, another process may have begun and ended
}

bool RunDir::holds_lock() const { return is_at(path_ + "/lock", lock_); }

void RunDir::unlock() {
  if (lock_ >= 0 && is_at(path_, handle_) && holds_lock())
    ::unlink((path_ + "/lock").c_str());
  ::close(std::exchange(lock_, -1));
  ::close(std::exchange(handle_, -1));
}

/// A path of the folder that is right wherever that is, where the system has one.
std::string RunDir::inside() const {
  const std::string path = fmt::format("/proc/self/fd/{}", handle_);
  return is_at(path, handle_) ? path : path_;
}

std::string RunDir::keep() {
  if (lock_ < 0)
    return "";
  constexpr const char* lost = "so the run ends; what it has learnt since its last save is lost";
  const std::string before = path_;
  std::error_code none;
  if (!is_at(path_, handle_))
    path_ = fs::read_symlink(fmt::format("/proc/self/fd/{}", handle_), none).string();
  if (!is_at(path_, handle_)) {
    path_ = before;
    throw FileError(fmt::format("{}: the folder was removed, {}", path_, lost));
  }
  if (!holds_lock())
    throw FileError(
        fmt::format("{}/lock: is gone: another run may have begun in the folder, {}", path_, lost));
  return path_ == before
             ? ""
             : fmt::format("{}: the folder was moved; the run goes on in {}", before, path_);
}

void RunDir::save(const std::string& name,
                  const std::function<void(const std::string& path)>& write) const {
  const std::string folder = inside();
  try {
    write(folder + "/" + name);
  } catch (const FileError& error) {
    const std::string what = error.what();
    throw FileError(what.starts_with(folder) ? path_ + what.substr(folder.size()) : what);
  }
}

/// The path of a file, which is noted if there is none yet.
std::string RunDir::noted(const char* name) {
  std::string path = path_ + "/" + name;
  std::error_code none;
  if (!fs::exists(fs::symlink_status(path, none)))
    made_.push_back(path);
  return path;
}

void RunDir::write_text(const char* name, const std::string& text) {
  const ConfigFile& read = config_file();
  const std::string path = noted(name);
  if (std::error_code none; fs::equivalent(path, read.path, none)) {
    if (read.text == text)
      return;
    throw FileError(fmt::format(
        "{}: is read, and a run in {} would write over it: copy it, or name another folder",
        read.path, path_));
  }
  save(name, [&](const std::string& there) {
    xgrad::io::AtomicFile file(there);
    file.write(text);
    file.commit();
  });
}

std::string RunDir::open(const std::string& config, const std::string& environment,
                         std::uint64_t steps, std::uint64_t rows) {
  try {
    if (handle_ < 0)
      lock();
    // What AtomicFile leaves of the run's files if its process is killed.
    static const std::regex temporary(R"((.*)\.\d+\.\d+\.tmp)");
    std::error_code none;
    for (const std::string& name : names_in(path_))
      if (std::smatch match; std::regex_match(name, match, temporary) && is_file_of_run(match[1]))
        fs::remove(path_ + "/" + name, none);
    write_text("config.json", config + "\n");
    write_text("environment.json", environment + "\n");
    metrics_.emplace(noted("metrics.jsonl"), rows);
    samples_.emplace(noted("samples.jsonl"), steps + 1);
  } catch (...) {
    metrics_.reset();
    samples_.reset();
    // Files while nobody else may have begun; of folders only empty ones go.
    std::error_code none;
    for (const bool folders : {false, true}) {
      for (auto path = made_.rbegin(); path != made_.rend(); ++path)
        if (fs::is_directory(*path, none) == folders)
          fs::remove(*path, none);
      unlock();
    }
    throw;
  }
  return lost_after(steps, rows);
}

std::string RunDir::lost_after(std::uint64_t steps, std::uint64_t rows) const {
  std::vector<std::string> lost;
  if (metrics_->kept() < rows)
    lost.push_back(fmt::format("metrics.jsonl lacks {} of steps before",
                               format_count(rows - metrics_->kept(), "row", "rows")));
  if (const std::size_t later = metrics_->dropped() - (metrics_->dropped() > 0 && rows < steps))
    lost.push_back(fmt::format("{} of later steps went from metrics.jsonl",
                               format_count(later, "row", "rows")));
  for (const std::string& name : names_in(path_))
    if (is_checkpoint_name(name) && step_of(path_ + "/" + name) > steps)
      lost.push_back(fmt::format("{} is of a later step, and goes at the first save", name));
  std::sort(lost.begin(), lost.end());
  return fmt::format("{}", fmt::join(lost, "; "));
}

void RunDir::drop_later(std::uint64_t step) const {
  const std::string folder = inside();
  std::error_code none;
  for (const std::string& name : names_in(folder))
    if (is_checkpoint_name(name) && step_of(folder + "/" + name) > step)
      fs::remove(folder + "/" + name, none);
}

void RunDir::keep_checkpoint(std::uint64_t step, std::size_t count) const {
  const fs::path folder = inside();
  const auto kept = [&](std::uint64_t of) {
    return folder / fmt::format("checkpoint-{:08}.safetensors", of);
  };
  // A checkpoint is never changed in place, so two names cannot disturb each other.
  const fs::path temporary = fmt::format("{}.{}.0.tmp", kept(step).string(), ::getpid());
  std::error_code error, none;
  fs::create_hard_link(folder / checkpoint_name, temporary, error);
  if (error)  // not all file systems can
    fs::copy_file(folder / checkpoint_name, temporary);
  fs::rename(temporary, kept(step));
  fs::remove(temporary, none);  // rename() does nothing where both are one file already
  std::vector<std::uint64_t> steps;
  for (const std::string& name : names_in(folder))
    if (const auto of = step_in(name); of && *of <= step)
      steps.push_back(*of);
  std::sort(steps.rbegin(), steps.rend());
  for (std::size_t i = count; i < steps.size(); ++i)
    fs::remove(kept(steps[i]), none);
}

}  // namespace char_transformer
