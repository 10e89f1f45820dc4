#pragma once
// A model in training: its steps.

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/optim/adam.hpp>
#include <xgrad/optim/schedule.hpp>

#include "ranks.hpp"
#include "recipe.hpp"
#include "source.hpp"

namespace char_transformer {

struct StepRecord {
  std::size_t step = 0;  ///< from 0
  double loss = 0;       ///< before the step's update
  double lr = 0;
  double grad_norm = 0;  ///< before clipping
  double ms = 0;
};

/// A loss or a gradient that is no longer finite.  The message names the step and the op.
struct NotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs a computation again that gave something that is not finite, and says which op began it.
/// The computation must draw the same numbers again.
std::string first_anomaly(const std::function<void()>& again);

struct Start;

class Training {
 public:
  /// Draws the weights, or takes those of a checkpoint, which is then forgotten; a run that goes on
  /// gets its optimizer and generator back, too.
  Training(Start& start, Ranks& ranks);

  /// Throws NotFinite before the update if the loss or the gradient's norm is not finite.
  StepRecord make_step(std::size_t step);

  /// The time that the gradient of a character takes this rank alone, in milliseconds: measured for
  /// about half a second on random rows that go nowhere, and leave what the training draws and
  /// holds as it is.  No value if stopped.
  std::optional<double> measure(std::uint64_t seed, const std::function<bool()>& stop) const;

  std::size_t tokens_per_step() const {
    return recipe_.batch_size * recipe_.block_size * recipe_.gradient_accumulation_steps;
  }

  xgrad::nn::GPT& model() { return model_; }
  xgrad::optim::AdamW& optimizer() { return optimizer_; }
  const Ranks& ranks() const { return ranks_; }

 private:
  [[noreturn]] void stop_before_update(const std::string& what, const xgrad::Generator& generator);
  xgrad::parallel::ShardLoss loss_of(std::vector<std::size_t> starts) const;
  double add_gradients();

  const Recipe& recipe_;
  const Source& source_;
  xgrad::nn::GPT model_;
  std::vector<xgrad::Tensor> parameters_;
  Ranks& ranks_;
  xgrad::optim::AdamW optimizer_;
  xgrad::optim::Schedule rate_;
};

/// The command `train`, on each rank, of which the first alone prints and writes.  Returns the exit
/// code: 0; 128 + the signal that ended it early; 1 if something could not be saved.  Throws
/// xgrad::Error for files and texts, and NotFinite; the checkpoint is then the last that was good.
int train(const TrainOptions& options, Ranks& ranks);

/// Trains on the run's first batch alone, with its model and its learning rate but without dropout,
/// weight decay and a schedule, until the loss is as low as it can be or --max-iters steps (500)
/// are made.  Prints a verdict; the exit code: 0 if the loss went down, 1 if not, 128 + a signal.
/// Writes no files.
int overfit_one_batch(Start& start, Ranks& ranks);

}  // namespace char_transformer
