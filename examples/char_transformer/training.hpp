#pragma once
// A model in training: its steps.

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/optim/adam.hpp>
#include <xgrad/optim/schedule.hpp>

#include "ranks.hpp"
#include "recipe.hpp"
#include "source.hpp"

namespace char_transformer {

/// A step, as a row of metrics.jsonl says it.
struct StepRecord {
  std::size_t step = 0;  ///< from 0
  double loss = 0;       ///< before the step's update
  double lr = 0;
  double grad_norm = 0;                        ///< before clipping
  double ms = 0;                               ///< of the step, without evaluations
  std::optional<double> val_loss_before = {};  ///< of step 0: an estimate before its update
  std::optional<double> val_loss = {};         ///< an estimate after the step's update
  std::string val_loss_over = {};              ///< what these two are estimated over
  std::optional<double> final_val_loss = {};   ///< of the last step, over whole blocks
  std::string final_val_loss_over = {};
  std::string changes = {};  ///< of the run's flags before this step
};

/// A row, in one line.
std::string format_row(const StepRecord& record);
/// A row without its evaluations, which are made again; none for what is no row.
std::optional<StepRecord> read_row(const xgrad::io::Json& row);

/// A loss or a gradient that is no longer finite.  The message names the step and the op.
struct NotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs a computation again that gave something that is not finite, and says which op began it.
/// The computation must draw the same numbers again.
std::string first_anomaly(const std::function<void()>& again);

class Training {
 public:
  /// Draws the weights.
  Training(const Recipe& recipe, const Source& source, Ranks& ranks);

  /// Throws NotFinite before the update if the loss or the gradient's norm is not finite.
  StepRecord make_step(std::size_t step);

  /// The time that the gradient of a character takes this rank alone, in milliseconds: measured on
  /// random rows that go nowhere, twice as many as all threads have at a time in a step, or as many
  /// as half a second allows.  What the training draws and holds is as if this had not been called.
  /// No value if stopped.
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
  double add_gradients_of_batch();
  double add_gradients();

  const Recipe& recipe_;
  const Source& source_;
  xgrad::nn::GPT model_;
  std::vector<xgrad::Tensor> parameters_;
  Ranks& ranks_;
  xgrad::optim::AdamW optimizer_;
  xgrad::optim::Schedule rate_;
};

}  // namespace char_transformer
