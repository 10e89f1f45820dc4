#pragma once
// The beginning of a run: its options, its text, and the checkpoint that it resumes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <xgrad/io/checkpoint.hpp>

#include "checkpoint_info.hpp"
#include "ranks.hpp"
#include "recipe.hpp"
#include "run_dir.hpp"

namespace char_transformer {

struct PreparedRun {
  TrainOptions options;  ///< of a run that goes on its own, and what may change
  std::optional<xgrad::io::Checkpoint> from = {};  ///< whose weights it begins with
  std::optional<std::uint64_t> resumed = {};       ///< the steps it has made, if it goes on
  std::string about = {};                          ///< of `from`: "PATH, after 300 steps"
  CheckpointInfo info = {};                        ///< of `from`; then for its own checkpoints
  std::string changes = {};                        ///< of its flags: "--min-lr 1 -> 2"
  Dataset dataset = {};
  std::unique_ptr<RunDir> run_dir = {};  ///< of which only the first of several ranks knows

  std::uint64_t steps() const { return resumed.value_or(0); }
};

/// Reads what `given` names; none if a run has ended and there is nothing left to do, which is
/// said.  FileError for what cannot be read, and if flags that were given disagree with a
/// checkpoint: all of them are listed.  UsageError for what does not go together.  Ranks that do
/// not begin with the same checkpoint, text and flags are refused.
std::optional<PreparedRun> prepare(const TrainOptions& given, const Ranks& ranks);

/// The header of a run: the model and its size, the text, the threads and the learning rates.
std::string describe(const PreparedRun& run, const xgrad::nn::GPT& model);
/// For environment.json: what the run is trained with, which changes none of its numbers.
std::string format_environment(std::size_t ranks);
/// Writes report.html of a run that has ended or was interrupted.  Why that failed; empty if it did
/// not.  Nothing that a run needs depends on it, so it throws nothing.
std::string write_report(const std::string& folder);

/// Empty for a file that cannot be read, as where the system does not show a program's own.
std::string file_checksum(const std::string& path);
/// A command line for a shell that goes on with a run.
std::string resume_command(const TrainOptions& options, const std::string& folder);

}  // namespace char_transformer
