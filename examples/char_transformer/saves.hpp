#pragma once
// The checkpoints that a run leaves.  A save that fails does not end it: it is said at once, and
// tried again.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "run_dir.hpp"

namespace char_transformer {

class Saves {
 public:
  /// `write` writes a checkpoint to a path, and throws if it cannot; `warn` prints a line.  The
  /// last `keep` that are to be kept are.  `saved` is the step of the checkpoint that is there.
  Saves(RunDir& run_dir, std::size_t keep, std::optional<std::uint64_t> saved,
        std::function<void(const std::string& path)> write,
        std::function<void(const std::string& line)> warn)
      : run_dir_(run_dir),
        keep_(keep),
        write_(std::move(write)),
        warn_(std::move(warn)),
        saved_(saved) {}

  /// Saves the run after so many steps; `kept` if this is one of those that may be kept.
  void save(std::uint64_t steps, bool kept);
  /// The same to best.safetensors.
  void save_best();

  /// Whether to try again what failed.
  bool retry_due() const;
  /// Whether something is not saved that should be.
  bool failed() const { return failed_ || best_failed_; }
  /// The steps of the checkpoint that is there; none if there is none.
  std::optional<std::uint64_t> saved() const { return saved_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool attempt(const std::function<void()>& f, bool& failed,
               const char* then = "and saving is tried again");

  RunDir& run_dir_;
  std::size_t keep_;
  std::function<void(const std::string& path)> write_;
  std::function<void(const std::string& line)> warn_;
  std::optional<std::uint64_t> saved_;
  bool failed_ = false;       ///< the last save of checkpoint.safetensors
  bool best_failed_ = false;  ///< the last save of best.safetensors
  Clock::time_point tried_ = {};
};

}  // namespace char_transformer
