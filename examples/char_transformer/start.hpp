#pragma once
// What a run begins with: its options, its text, and what it goes on from.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/parallel/communicator.hpp>

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
  Evaluations evaluations = {};
  std::string changes = {};  ///< of its flags, as it goes on
};

/// Gives a model in training the weights that it begins with, and forgets the checkpoint that they
/// came from.  A run that goes on gets its optimizer and generator back, too.
void load_weights(Start& start, Training& training);

/// Whether best.safetensors is not of the lowest loss, as it could not be saved.
bool best_is_missing(const RunDir& run_dir, const Evaluations& evaluations);

/// Properties, and what they are on this rank.
using Properties = std::vector<std::pair<const char*, std::string>>;
/// RankError that names the first property that is not the same on all ranks.
void check_same(const xgrad::parallel::Communicator& world, const Properties& properties);

/// Reads what `options` name; none if a run has ended and there is nothing left to do, which is
/// said.  FileError and UsageError for what does not do.  RankError if the ranks of a world do not
/// begin with the same: the program, the processor's instructions, the text, the steps.
std::optional<Start> prepare(const TrainOptions& options,
                             const xgrad::parallel::Communicator& world);

}  // namespace char_transformer
