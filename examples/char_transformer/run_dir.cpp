#include "run_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <limits>
#include <regex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/io/safetensors.hpp>

#include "command.hpp"

namespace char_transformer {
namespace {

namespace fs = std::filesystem;
using xgrad::FileError;

constexpr const char* numbered_under = "runs";

[[noreturn]] void refuse(const fs::path& path, const char* what, const std::string& why) {
  throw FileError(fmt::format("{}: the folder cannot be {}: {}", path.string(), what, why));
}

/// The nearest folder above that is there, or what is in its place.
fs::path nearest(fs::path path) {
  std::error_code none;
  while (!fs::exists(path, none) && path.has_parent_path() && path != path.parent_path())
    path = path.parent_path();
  return fs::exists(path, none) ? path : fs::path(".");
}

/// Makes a folder, and those around it, and adds them to what was made; false if it was there
/// already.
bool make_folder(const fs::path& path, std::vector<std::string>& made) {
  std::error_code error, none;
  if (path.has_parent_path() && !fs::exists(path.parent_path(), none))
    make_folder(path.parent_path(), made);
  const bool is_new = fs::create_directory(path, error);
  if (error)
    refuse(path, "made", error.message());
  if (is_new)
    made.push_back(path.string());
  return is_new;
}

/// Throws what make_folder() would, as far as that can be seen, and makes nothing.
void check_folder(const fs::path& path) {
  std::error_code none;
  const fs::path there = nearest(path);
  if (!fs::is_directory(there, none))
    refuse(path, "made", fmt::format("{} is not a folder", there.string()));
  if (::access(there.c_str(), W_OK | X_OK) != 0)
    refuse(path, there == path ? "written" : "made",
           std::error_code(errno, std::generic_category()).message());
}

std::string next_numbered(const fs::path& parent) {
  unsigned next = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(parent, none)) {
    const std::string name = entry.path().filename().string();
    unsigned number = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && stop == name.data() + name.size() && name.size() < 9)
      next = std::max(next, number + 1);
  }
  return fmt::format("{:03}", next);
}

/// Removes what AtomicFile leaves of the run's files if its process is killed.
void remove_temporaries(const std::string& folder) {
  static const std::regex pattern(R"((.*)\.\d+\.\d+\.tmp)");
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    std::smatch match;
    if (std::regex_match(name, match, pattern) &&
        (is_checkpoint_name(match[1]) || match[1] == "config.json" || match[1] == "trace.json" ||
         match[1] == "environment.json" || match[1] == "report.html"))
      fs::remove(entry.path(), none);
  }
}

}  // namespace

bool is_checkpoint_name(const std::string& name) {
  static const std::regex kept(R"(checkpoint-\d+\.safetensors)");
  return name == checkpoint_name || name == best_name || std::regex_match(name, kept);
}

void check_no_file_of_run(const std::string& path) {
  std::error_code none;
  const fs::path target = fs::weakly_canonical(path, none);
  const std::string name = target.filename().string();
  const bool named = is_checkpoint_name(name) || name == "config.json" || name == "metrics.jsonl" ||
                     name == "samples.jsonl" || name == "environment.json" || name == "trace.json";
  if (const fs::path folder = target.parent_path();
      named && fs::exists(folder / "config.json", none) &&
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
  return std::nullopt;
}

std::string find_checkpoint(const std::string& path) {
  std::error_code none;
  if (!fs::is_directory(path, none))
    return path;
  if (auto found = checkpoint_in(path))
    return *found;
  throw FileError(fmt::format("{}: the folder holds no checkpoint", path));
}

/// What training writes beside checkpoints.
constexpr std::array<std::string_view, 6> runs_files = {"config.json",   "metrics.jsonl",
                                                        "samples.jsonl", "environment.json",
                                                        "report.html",   "trace.json"};

/// Throws FileError if the folder holds more than it may.
void RunDir::check() const {
  std::error_code none;
  const bool saved = fs::exists(checkpoint(), none) || fs::exists(best(), none);
  for (const auto& entry : fs::directory_iterator(path_, none)) {
    const std::string name = entry.path().filename().string();
    if (!is_checkpoint_name(name) && std::ranges::find(runs_files, name) == runs_files.end())
      continue;
    if (entry.is_symlink(none))  // somebody else may have made it
      throw FileError(fmt::format("{}: is a link, and a run writes into its own folder only",
                                  entry.path().string()));
    if (name.ends_with(".jsonl") && entry.is_regular_file(none) &&
        entry.hard_link_count(none) > 1)  // rows are added in place
      throw FileError(fmt::format(
          "{}: has another name as well (a hard link), whose rows would change: copy it",
          entry.path().string()));
    if (holds_ == Holds::run)
      continue;
    if (saved)
      throw FileError(
          fmt::format("{0}: the folder holds a run already ({1}); --resume {0} goes on with it, or "
                      "name another",
                      path_, name));
    if (name.starts_with("checkpoint-"))  // --keep would remove it
      throw FileError(
          fmt::format("{0}: the folder holds {1} of a run already; --resume {0}/{1} goes on from "
                      "it, or name another",
                      path_, name));
    if (holds_ == Holds::nothing)
      throw FileError(
          fmt::format("{}: the folder holds a run already ({}), which was ended before it saved "
                      "anything; --resume begins it again, or name another",
                      path_, name));
  }
}

void RunDir::check_input(const std::string& path) const {
  std::error_code none;
  for (const std::string_view name : runs_files)
    if (!path.empty() && fs::equivalent(path, fs::path(path_) / name, none))
      throw FileError(fmt::format(
          "{}: is read, and a run in {} would write over it: name another folder", path, path_));
}

RunDir RunDir::fresh(const std::string& out, bool again) {
  check_folder(out.empty() ? numbered_under : out);
  const RunDir dir(out, again ? Holds::no_checkpoint : Holds::nothing);
  if (!out.empty())
    dir.check();
  return {out, dir.holds_};
}

void RunDir::lock() {
  // Another run may take the same number in the same moment; then the one after it is free.
  while (path_.empty()) {
    const fs::path path = fs::path(numbered_under) / next_numbered(numbered_under);
    if (make_folder(path, made_))
      path_ = path.string();
  }
  make_folder(path_, made_);
  lock_.emplace(path_);
  check();  // since it was looked at, another process may have begun and ended
}

/// The path of a file, which is noted if there is none yet.
std::string RunDir::noted(const char* name) {
  std::string path = path_ + "/" + name;
  std::error_code none;
  if (!fs::exists(fs::symlink_status(path, none)))
    made_.push_back(path);
  return path;
}

std::string RunDir::keep() {
  if (!lock_)
    return "";
  std::optional<std::string> place;
  for (int again = 0; (place = lock_->place()) && !lock_->holds(); ++again) {
    if (again > 0)
      throw FileError(fmt::format(
          "{}/lock: is gone: another run may have begun in the folder, so this one ends; what it "
          "has learnt since its last save is lost",
          *place));
    std::this_thread::sleep_for(std::chrono::seconds(1));  // the folder may be about to go as well
  }
  if (place == path_)
    return "";
  if (place)
    return fmt::format("{}: the folder was moved; the run goes on in {}",
                       std::exchange(path_, *place), *place);
  const std::string metrics = metrics_->all(), samples = samples_->all();
  metrics_.reset();
  samples_.reset();
  lock_.reset();
  made_.clear();
  holds_ = Holds::nothing;
  open(std::numeric_limits<std::uint32_t>::max(), metrics, samples);
  return fmt::format("{}: the folder was removed; it is made again", path_);
}

void RunDir::save(const std::string& path,
                  const std::function<void(const std::string& path)>& write) const {
  const std::string inside = lock_ ? lock_->inside() : path_;
  try {
    write(inside + path.substr(path_.size()));
  } catch (const FileError& error) {
    const std::string what = error.what();
    throw FileError(what.starts_with(inside) ? path_ + what.substr(inside.size()) : what);
  }
}

std::string RunDir::open(const std::string& config, const std::string& environment,
                         std::uint64_t steps) {
  config_ = config;
  environment_ = environment;
  open(steps, "", "");
  if (holds_ != Holds::run)
    return "";
  std::vector<std::string> lost;
  if (metrics_->kept() < steps)
    lost.push_back(fmt::format("metrics.jsonl lacks {} of steps before",
                               xgrad::counted(steps - metrics_->kept(), "row", "rows")));
  if (metrics_->dropped() > 0)
    lost.push_back(fmt::format("{} of later steps went from metrics.jsonl",
                               xgrad::counted(metrics_->dropped(), "row", "rows")));
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(path_, none))
    if (const std::string name = entry.path().filename().string();
        is_checkpoint_name(name) && step_of(entry.path().string()) > steps)
      lost.push_back(fmt::format("{} is of a later step, and will be replaced", name));
  std::sort(lost.begin(), lost.end());
  return fmt::format("{}", fmt::join(lost, "; "));
}

/// With these rows, where there are any.
void RunDir::open(std::uint64_t steps, const std::string& metrics, const std::string& samples) {
  try {
    if (!lock_)
      lock();
    remove_temporaries(path_);
    for (const auto& [name, text] : {std::pair("config.json", config_ + "\n"),
                                     {"environment.json", environment_ + "\n"},
                                     {"metrics.jsonl", metrics},
                                     {"samples.jsonl", samples}}) {
      if (text.empty())
        continue;
      if (std::error_code none; fs::equivalent(path_ + "/" + name, config_file().path, none)) {
        if (config_file().text == text)
          continue;
        throw FileError(fmt::format(
            "{}: is read, and a run in {} would write over it: copy it, or name another folder",
            config_file().path, path_));
      }
      xgrad::io::AtomicFile file(noted(name));
      file.write(text);
      file.commit();
    }
    metrics_.emplace(noted("metrics.jsonl"), steps);
    samples_.emplace(noted("samples.jsonl"), steps + 1);
  } catch (...) {
    metrics_.reset();
    samples_.reset();
    const auto remove = [this](bool folders) {
      std::error_code none;
      for (auto path = made_.rbegin(); path != made_.rend(); ++path)
        if (fs::is_directory(*path, none) == folders)
          fs::remove(*path, none);
    };
    // Files while nobody else may have begun; of folders only empty ones go.
    remove(false);
    lock_.reset();
    remove(true);
    throw;
  }
}

void RunDir::keep_checkpoint(std::uint64_t step, std::size_t count,
                             const std::function<void(const std::string& path)>& write) const {
  const auto kept = [&](std::uint64_t of) {
    return fmt::format("{}/checkpoint-{:08}.safetensors", path_, of);
  };
  // A checkpoint is never changed in place, so two names cannot disturb each other.
  const std::string temporary = fmt::format("{}.{}.0.tmp", kept(step), ::getpid());
  std::error_code error;
  fs::create_hard_link(checkpoint(), temporary, error);
  if (!error)
    fs::rename(temporary, kept(step), error);
  std::error_code none;
  fs::remove(temporary, none);
  if (error)
    write(kept(step));
  static const std::regex pattern(R"(checkpoint-(\d{8,10})\.safetensors)");
  std::vector<std::uint64_t> steps;
  for (const auto& entry : fs::directory_iterator(path_, none)) {
    const std::string name = entry.path().filename().string();
    std::smatch match;
    if (std::regex_match(name, match, pattern) && std::stoull(match[1]) <= step)
      steps.push_back(std::stoull(match[1]));
  }
  std::sort(steps.rbegin(), steps.rend());
  for (std::size_t i = count; i < steps.size(); ++i)
    fs::remove(kept(steps[i]), none);
}

}  // namespace char_transformer
