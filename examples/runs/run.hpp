#pragma once
// What a run has left in its folder.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>
#include <xgrad/io/json.hpp>

#include "metrics.hpp"

namespace runs {

/// What the model wrote after so many steps.
struct Sample {
  double steps;
  std::string text;
};

struct Run {
  std::string path;    ///< of its metrics file
  std::string folder;  ///< that holds it
  std::string name;    ///< for people, printable: the folder's name
  Metrics metrics = {};
  xgrad::io::Json config = {};            ///< config.json: an object, or null
  xgrad::io::Json environment = {};       ///< environment.json: an object, or null
  std::vector<Sample> samples = {};       ///< of samples.jsonl
  std::size_t unread_samples = 0;         ///< lines of it that are none
  std::optional<double> parameters = {};  ///< numbers in the model of its checkpoint
  std::string text = {};  ///< what its checkpoint says of the text: a checksum and the characters
};

/// A run by its folder, or by its metrics.jsonl alone.  FileError if its metrics cannot be read;
/// all else may be missing.
Run read_run(const std::string& path);

/// Several, under names that differ: where two have one name, as much of their paths as tells them
/// apart, and of one that is there twice "NAME (2)".
std::vector<Run> read_runs(const std::vector<std::string>& paths);

/// The files that were read of runs, there or not.
std::vector<std::string> files_of(const std::vector<Run>& runs);

/// What its numbers come to.
struct Summary {
  double steps = 0;                    ///< made
  std::optional<double> planned = {};  ///< --max-iters
  double loss = 0;  ///< mean of the last `loss_of` steps that are finite; NaN: none
  std::size_t loss_of = 0;
  std::size_t not_finite = 0;  ///< losses
  std::optional<double> best = {},
                        best_after = {};  ///< lowest validation loss, and steps made then
  std::optional<double> validation = {};  ///< the last
  std::optional<double> final_validation = {};
  std::optional<double> ms = {};  ///< of a step, the median
  std::optional<double> tokens_per_second = {};
  std::optional<double> seconds = {};  ///< of all steps
};
Summary summarise(const Run& run);

/// Characters in a step, as its configuration says.
std::optional<double> tokens_per_step(const Run& run);

}  // namespace runs
