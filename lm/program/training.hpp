#pragma once
// A model in training: its steps and losses.

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>
#include <xgrad/autograd/random.hpp>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/optim/optimizers.hpp>

#include "ranks.hpp"
#include "run.hpp"
#include "runs/format.hpp"

namespace program {

using runs::MetricsRow;

/// A loss or a gradient that is not finite.  The message names the step and the op.
struct NotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Repeats a computation whose result was not finite, and names the first such op.  It must draw
/// the same numbers again.
std::string first_anomaly(const std::function<void()>& again);

/// A model with its optimizer.
class Learner {
 public:
  /// Draws the weights, or takes those of a checkpoint and frees it; a resumed run also restores
  /// its optimizer and generator.
  Learner(Run& run, Ranks& ranks);

  /// Makes a step and returns the row of it.  Throws NotFinite before the update if the loss or the
  /// gradient's norm is not finite.
  MetricsRow make_step(std::size_t step);

  std::size_t tokens_per_step() const {
    return recipe_.batch_size * recipe_.block_size * recipe_.gradient_accumulation_steps;
  }

  xgrad::lm::GPT& model() { return model_; }
  xgrad::optim::AdamW& optimizer() { return optimizer_; }
  const Ranks& ranks() const { return ranks_; }

 private:
  [[noreturn]] void stop_before_update(const std::string& what, const xgrad::Generator& generator);
  double add_gradients();

  const Recipe& recipe_;
  const Dataset& dataset_;
  xgrad::lm::GPT model_;
  std::vector<xgrad::Tensor> parameters_;  ///< the trained ones
  Ranks& ranks_;
  xgrad::optim::AdamW optimizer_;
  xgrad::optim::Schedule rate_;
};

/// The learning rate of each step.
xgrad::optim::Schedule schedule_of(const Recipe& recipe);

/// Stops an evaluation.  Either may be empty.
struct Stop {
  std::function<bool(double done)> between = {};  ///< called before every batch with the part done
  std::function<bool()> within = {};  ///< called after every op of it, on several threads at once
};

/// The model's mean loss over the blocks of a part that begin at `starts`.  If documents end with
/// ids, no position sees another document; the first token of one is predicted from the one before.
xgrad::Tensor loss_at(const xgrad::lm::GPT& model, const xgrad::lm::Ids& part,
                      std::span<const std::int64_t> document_end, std::size_t block_size,
                      std::span<const std::size_t> starts);
/// Computes losses of a model on a part of a text, with dropout off.
struct Evaluation {
  const Ranks& ranks;
  const xgrad::lm::GPT& model;
  const xgrad::lm::Ids& part;
  std::span<const std::int64_t> document_end;
  std::size_t block_size;

  /// The mean loss over the first `blocks` consecutive blocks; no value if stopped.
  std::optional<double> over_blocks(std::size_t blocks, const Stop& stop) const;
  /// The mean loss over random batches from a generator of this seed; no value if stopped.
  std::optional<double> estimate(std::size_t batch_size, std::size_t batches, std::uint64_t seed,
                                 const Stop& stop) const;
};

/// "all 29 blocks", "the first 2,048 of 17,000 blocks", "the only block".
std::string format_blocks(std::size_t blocks, std::size_t all);
/// Prints "LABEL X (perplexity Y, Z bits per byte)", what it is over, and, given the text's own
/// entropy, the distance from it.
void print_loss(const std::string& label, double loss, double bits_per_byte,
                const std::string& over, const std::optional<double>& entropy);

/// The command `train`, on each rank; only the first prints and writes.  Returns the exit code: 0;
/// 128 + the signal that ended it early; 1 if something could not be saved.  Throws xgrad::Error
/// for files and texts, and NotFinite; the checkpoint is then the last good one.
int train(const TrainOptions& options, Ranks& ranks);

/// Trains on the run's first batch alone, with its model and learning rate but no dropout, weight
/// decay or schedule, until the loss is lowest or after --max-iters (500) steps.  Prints a verdict;
/// the exit code: 0 if the loss went down, 1 if not, 128 + a signal. Writes no files.
int overfit_one_batch(Run& run, Ranks& ranks);

}  // namespace program
