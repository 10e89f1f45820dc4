#pragma once
// Going on with a run: which, from where, and with what configuration.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <xgrad/io/checkpoint.hpp>

#include "notes.hpp"
#include "options.hpp"

namespace char_transformer {

/// Where a run stands.
struct ResumePoint {
  std::string folder;
  xgrad::io::Checkpoint checkpoint;
  Notes notes;
  TrainOptions options;                   ///< those of the run, and what may change
  std::vector<std::string> changes = {};  ///< that --allow-changes allowed: "--min-lr 1 -> 2"
};

/// What may be another with --allow-changes.
inline constexpr std::array<std::string_view, 5> changeable = {
    "--learning-rate", "--min-lr", "--warmup-iters", "--lr-decay-iters", "--eval-interval"};

/// Whether an evaluation belongs after so many steps.
bool evaluation_due(const Recipe& recipe, std::uint64_t steps);
/// Whether a run has ended: all steps made and evaluated, or its patience at an end.
bool finished(const Recipe& recipe, std::uint64_t steps, const Evaluations& evaluations);

/// The checkpoint that `options.resume` means.  None if `options.out` names a folder that has none,
/// where a run begins.  FileError if there is nothing to go on with.
std::optional<std::string> checkpoint_to_resume(const TrainOptions& options);

/// Reads it.  FileError for what is not a checkpoint of a run, and if flags that were given
/// disagree with it: all of them are listed.
ResumePoint read_resume_point(const std::string& checkpoint, const TrainOptions& options);

/// The options of a new run with the sizes of a model's checkpoint.  FileError as above.
TrainOptions with_sizes_of(const xgrad::io::Checkpoint& checkpoint, const Notes& notes,
                           TrainOptions options);

/// A word of a command line for a POSIX shell.
std::string quoted(const std::string& word);

/// The options with which `train` would begin or go on: of a run that goes on its own, of weights
/// that it begins with their sizes.  FileError as above.
TrainOptions resolved(TrainOptions options);

/// A command line for a shell that goes on with a run.
std::string resume_command(const TrainOptions& options, const std::string& folder);

}  // namespace char_transformer
