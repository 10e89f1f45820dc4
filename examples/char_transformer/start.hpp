#pragma once
// What a run begins with: its options, its text, and what it goes on from.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <xgrad/io/checkpoint.hpp>

#include "notes.hpp"
#include "options.hpp"
#include "run_dir.hpp"
#include "source.hpp"
#include "training.hpp"

namespace char_transformer {

struct Start {
  TrainOptions options;
  Source source;
  std::unique_ptr<RunDir> run_dir;  ///< of which only the first of several ranks knows
  std::optional<xgrad::io::Checkpoint> from = {};  ///< whose weights it begins with
  std::optional<std::uint64_t> resumed = {};       ///< the steps it has made, if it goes on
  Notes notes;                                     ///< for its checkpoints
  xgrad::io::Json config = nullptr;                ///< its config.json, if it goes on
  std::string changes = {};                        ///< of its flags, as it goes on
};

/// Gives a model in training the weights that it begins with, and forgets the checkpoint that they
/// came from.  A run that goes on gets its optimizer and generator back, too.
void load_weights(Start& start, Training& training);

/// Whether best.safetensors is not of the lowest loss, as it could not be saved.
bool best_is_missing(const RunDir& run_dir, const Evaluations& evaluations);

/// Empty for a file that cannot be read, as where the system does not show a program's own.
std::string file_checksum(const std::string& path);

/// Reads what `options` name; none if a run has ended and there is nothing left to do, which is
/// said.  FileError and UsageError for what does not do.  Ranks that do
/// not begin with the same checkpoint, text and flags are refused.
std::optional<Start> prepare(const TrainOptions& options, const Ranks& ranks);

}  // namespace char_transformer
