#include "saves.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <xgrad/autograd/fail.hpp>

namespace char_transformer {
namespace {

namespace fs = std::filesystem;
constexpr auto retry_after = std::chrono::seconds(10);

/// Makes a second name of a file; false where the file system has none.  A checkpoint is never
/// changed in place, so they cannot disturb each other.
bool link_file(const std::string& from, const std::string& to) {
  const std::string temporary = fmt::format("{}.{}.0.tmp", to, ::getpid());
  std::error_code error;
  fs::create_hard_link(from, temporary, error);
  if (error)
    return false;
  fs::rename(temporary, to, error);
  std::error_code none;
  fs::remove(temporary, none);
  return !error;
}

}  // namespace

bool Saves::attempt(const std::function<void()>& f, bool& failed, const char* then) {
  tried_ = Clock::now();
  for (bool again = false;; again = true) {
    try {
      f();
      failed = false;
      return true;
    } catch (const std::exception& error) {
      // The folder may have been moved or removed meanwhile.
      const std::string changed = again ? "" : run_dir_.keep();
      if (changed.empty()) {
        warn_(fmt::format("{}; training goes on, {}", error.what(), then));
        failed = true;
        return false;
      }
      warn_(changed);
      failed_ = true;  // a new folder has no checkpoint: it is due
      tried_ = {};
    }
  }
}

void Saves::save(std::uint64_t steps, bool kept) {
  const bool failed_before = failed_;
  if (!attempt([&] { write_(run_dir_.checkpoint()); }, failed_))
    return;
  saved_ = steps;
  if (failed_before)
    warn_(fmt::format("{}: saved again, after {}", run_dir_.checkpoint(),
                      xgrad::counted(steps, "step", "steps")));
  if (!kept || keep_ == 0)
    return;
  const std::string path = run_dir_.kept(steps);
  bool failed = false;  // what was to be kept of these steps is lost, and the run is not
  if (link_file(run_dir_.checkpoint(), path) || attempt([&] { write_(path); }, failed))
    run_dir_.remove_kept(steps, keep_);
}

void Saves::save_best() {
  attempt([&] { write_(run_dir_.best()); }, best_failed_, "and the next lower loss is saved again");
}

bool Saves::retry_due() const { return failed_ && Clock::now() - tried_ > retry_after; }

}  // namespace char_transformer
