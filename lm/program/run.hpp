#pragma once
// The beginning of a run: its options, its text, and the checkpoint that it resumes.
//
// TrainOptions (recipe.hpp) are the flags of `train`.  A Run is everything that they name, read and
// checked.  A Learner (training.hpp) is its model with its optimizer: it makes a step.  A Trainer
// (train.cpp) makes all steps, evaluates and saves.  train() is the command.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <xgrad/io/checkpoint.hpp>

#include "checkpoint_info.hpp"
#include "ranks.hpp"
#include "recipe.hpp"
#include "run_dir.hpp"

namespace program {

/// A run that is new, or tuned from a model (`from`), or resumed (`from` and `resumed`).
struct Run {
  TrainOptions options;  ///< of a resumed run its own, and those that may change
  std::optional<xgrad::io::Checkpoint> from = {};  ///< the source of its first weights
  std::optional<std::uint64_t> resumed = {};       ///< the steps made, of a resumed run
  std::optional<double> last_rate = {};            ///< of `from`'s run, if a new run begins with it
  std::string about = {};                          ///< of `from`: "PATH, after 300 steps"
  CheckpointInfo info = {};                        ///< of `from`; then for its own checkpoints
  std::string changes = {};                        ///< of its flags: "--min-lr 1 -> 2"
  Dataset dataset = {};
  std::unique_ptr<RunDir> run_dir = {};  ///< only on the first of several ranks

  std::uint64_t steps() const { return resumed.value_or(0); }
};

/// Reads everything that `given` names; none if a run is finished, which is printed.  FileError for
/// unreadable files, and a list of all given flags that disagree with the checkpoint.  UsageError
/// for flags that exclude each other.  Rejects ranks whose checkpoint, text or flags differ.
std::optional<Run> prepare(const TrainOptions& given, const Ranks& ranks);

/// The header of a run: the model and its size, the text, the threads and the learning rates.
std::string describe(const Run& run, const xgrad::lm::GPT& model);
/// For environment.json: the build and the machine, which change no number.
std::string format_environment(std::size_t ranks);
/// Writes report.html of a run that has ended or was interrupted.  Returns the reason if it failed;
/// throws nothing, because no run depends on a report.
std::string write_report(const std::string& folder);

/// Empty for a file that cannot be read: some systems hide a program's own.
std::string file_checksum(const std::string& path);
/// A shell command that resumes a run.
std::string resume_command(const TrainOptions& options, const std::string& folder);

}  // namespace program
