#include "train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>
#include <xgrad/autograd/check/anomaly.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/profile.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/data/batches.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/chrome_trace.hpp>
#include <xgrad/nn/gpt.hpp>
#include <xgrad/optim/adam.hpp>
#include <xgrad/optim/clip.hpp>
#include <xgrad/optim/schedule.hpp>
#include <xgrad/parallel/shards.hpp>

#include "evaluate.hpp"
#include "needs.hpp"
#include "progress.hpp"
#include "run_dir.hpp"
#include "sample.hpp"
#include "source.hpp"
#include "stop.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

using xgrad::Generator;
using xgrad::Indices;
using xgrad::Tensor;

/// Runs a computation again that gave something that is not finite, and says which op began it.
/// The computation must draw the same numbers again.
std::string first_anomaly(const std::function<void()>& again) {
  try {
    const xgrad::DetectAnomaly guard;
    again();
  } catch (const xgrad::AnomalyError& error) {
    return error.what();
  }
  return "run again with anomaly detection, every op's values and gradients are finite";
}

/// The first steps are slower than all that follow.
constexpr std::size_t profile_from = 10, profiled_steps = 10;

double milliseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

class Training {
 public:
  Training(const TrainOptions& options, const Source& source)
      : options_(options),
        recipe_(options.recipe),
        source_(source),
        model_(model_config(recipe_, source.characters.size())),
        parameters_(xgrad::nn::parameters(model_)),
        optimizer_(
            xgrad::optim::decay_matrices(parameters_, {.lr = recipe_.learning_rate,
                                                       .betas = {recipe_.beta1, recipe_.beta2},
                                                       .weight_decay = recipe_.weight_decay})),
        rate_(xgrad::optim::warmup_cosine({.learning_rate = recipe_.learning_rate,
                                           .min_lr = recipe_.min_lr,
                                           .warmup_iters = recipe_.warmup_iters,
                                           .lr_decay_iters = recipe_.lr_decay_iters})) {}

  void describe() const;
  double estimated_seconds() const;
  int run(RunDir& run_dir);

 private:
  StepRecord make_step(std::size_t step);
  [[noreturn]] void stop_before_update(const std::string& what, const Generator& generator);
  double add_gradients_of_batch(Generator& generator) const;
  double add_gradients();
  std::optional<double> evaluate_after(std::size_t step, const Stop& stop) const;
  void save(const RunDir& run_dir, std::size_t steps);
  int make_steps(RunDir& run_dir);

  std::size_t tokens_per_step() const {
    return recipe_.batch_size * recipe_.block_size * recipe_.gradient_accumulation_steps;
  }
  bool is_last(std::size_t step) const { return step + 1 == recipe_.max_iters; }

  const TrainOptions& options_;
  const Recipe& recipe_;
  const Source& source_;
  xgrad::nn::GPT model_;
  std::vector<Tensor> parameters_;
  xgrad::optim::AdamW optimizer_;
  xgrad::optim::Schedule rate_;
  std::size_t saved_steps_ = 0;     ///< that the checkpoint has made
  std::optional<double> val_loss_;  ///< over the whole validation split, in the end
};

void Training::describe() const {
  fmt::print("Model: n_layer {}, n_head {}, n_embd {}: {} parameters.\n", recipe_.n_layer,
             recipe_.n_head, recipe_.n_embd, format_count(xgrad::nn::num_parameters(model_)));
  fmt::print("Text:  {}: {} characters, {} different; {} to train on, {} to validate.\n",
             source_.name, format_count(source_.ids.train.size() + source_.ids.validation.size()),
             source_.characters.size(), format_count(source_.ids.train.size()),
             format_count(source_.ids.validation.size()));
  const std::size_t n = recipe_.gradient_accumulation_steps;
  fmt::print("Steps: {} of {} characters ({}{} blocks of {}), on {} threads ({}), seed {}.\n",
             format_count(recipe_.max_iters), format_count(tokens_per_step()),
             n > 1 ? fmt::format("{} batches of ", n) : "", recipe_.batch_size, recipe_.block_size,
             xgrad::num_threads(), xgrad::simd_name(), options_.seed);
  if (recipe_.max_iters > 0 && recipe_.max_iters <= recipe_.warmup_iters)
    fmt::print("Note:  the learning rate rises to the end: --warmup-iters {}, --max-iters {}.\n",
               recipe_.warmup_iters, recipe_.max_iters);
}

/// Times gradients of random batches that go nowhere: what the training draws and holds is as if
/// this had not been called.
double Training::estimated_seconds() const {
  constexpr double enough = 500;  // milliseconds
  const Generator before = xgrad::default_generator();
  Generator generator(options_.seed);
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  // The first is slower than all that follow.
  for (int i = 0; i < 10 && spent < enough; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    add_gradients_of_batch(generator);
    for (Tensor p : parameters_)
      p.zero_grad();
    const double ms = milliseconds(std::chrono::steady_clock::now() - begin);
    best = std::min(best, ms);
    spent += ms;
  }
  xgrad::default_generator() = before;

  // A forward pass alone is about a third of a step.
  const double ms_per_token = best / static_cast<double>(recipe_.batch_size * recipe_.block_size);
  const std::size_t evaluations =
      recipe_.max_iters == 0 ? 0 : (recipe_.max_iters - 1) / recipe_.eval_interval;
  const double tokens = static_cast<double>(recipe_.max_iters * tokens_per_step()) +
                        static_cast<double>(evaluations * recipe_.eval_iters * recipe_.batch_size *
                                                recipe_.block_size +
                                            source_.ids.validation.size()) /
                            3;
  return ms_per_token * tokens / 1000;
}

/// Draws a batch and adds its share of the step's gradient; returns its share of the loss.
double Training::add_gradients_of_batch(Generator& generator) const {
  const auto [x, y] = xgrad::data::random_batch(source_.ids.train, recipe_.block_size,
                                                recipe_.batch_size, generator);
  const auto n = static_cast<double>(recipe_.gradient_accumulation_steps);
  return xgrad::parallel::backward(
      [&](const Indices& inputs, const Indices& targets) {
        const Tensor mean = model_.loss(inputs, targets);
        return n == 1 ? mean : mean / n;
      },
      x, y);
}

/// Adds the gradient of the mean loss over the step's batches; returns that loss.
double Training::add_gradients() {
  double loss = 0;
  for (std::size_t i = 0; i < recipe_.gradient_accumulation_steps && std::isfinite(loss); ++i)
    loss += add_gradients_of_batch(xgrad::default_generator());
  return loss;
}

/// Throws NotFinite; `generator` is that of the moment before the step.
void Training::stop_before_update(const std::string& what, const Generator& generator) {
  const std::string reason = first_anomaly([&] {
    xgrad::default_generator() = generator;
    optimizer_.zero_grad();
    add_gradients();
  });
  throw NotFinite(fmt::format(
      "{}; training stops before this step's update (a lower --learning-rate or a lower "
      "--grad-clip may help)\n{}",
      what, reason));
}

StepRecord Training::make_step(std::size_t step) {
  const auto begin = std::chrono::steady_clock::now();
  const Generator generator = xgrad::default_generator();
  StepRecord record{.step = step, .lr = rate_(step)};
  optimizer_.set_learning_rate(record.lr);
  optimizer_.zero_grad();
  record.loss = add_gradients();
  if (!std::isfinite(record.loss))
    stop_before_update(fmt::format("step {}: the loss is {}", step, record.loss), generator);
  const double limit =
      recipe_.grad_clip > 0 ? recipe_.grad_clip : std::numeric_limits<double>::infinity();
  record.grad_norm = xgrad::optim::clip_grad_norm(parameters_, limit);
  if (!std::isfinite(record.grad_norm))
    stop_before_update(fmt::format("step {}: the gradient's norm is {}", step, record.grad_norm),
                       generator);
  optimizer_.step();
  record.ms = milliseconds(std::chrono::steady_clock::now() - begin);
  return record;
}

void Training::save(const RunDir& run_dir, std::size_t steps) {
  xgrad::io::save_checkpoint(
      run_dir.checkpoint(), model_, optimizer_,
      {.step = steps,
       .user = user_json(format_config(options_, source_.characters.size()), source_.characters)});
  saved_steps_ = steps;
}

/// The whole validation split after the last step, an estimate after every eval_interval steps.
std::optional<double> Training::evaluate_after(std::size_t step, const Stop& stop) const {
  if (is_last(step))
    return validation_loss(model_, source_.ids.validation, stop);
  if ((step + 1) % recipe_.eval_interval == 0)
    return estimate_loss(model_, source_.ids.validation, recipe_.batch_size, recipe_.eval_iters,
                         options_.seed, stop);
  return std::nullopt;
}

/// Returns the signal that ended it early, or 0; in either case the model is saved.  Where
/// something is not finite, it is not: what is in the folder is from before.
int Training::make_steps(RunDir& run_dir) {
  const StopSignals signals;
  Progress progress(recipe_.max_iters, tokens_per_step());
  std::optional<xgrad::Profile> profile;
  std::size_t step = 0;
  while (step < recipe_.max_iters && signals.received() == 0) {
    if (options_.profile && step == std::min(profile_from, recipe_.max_iters - 1))
      profile.emplace();
    StepRecord record = make_step(step);
    if (profile && (step + 1 == profile_from + profiled_steps || is_last(step))) {
      progress.line(profile->table());
      xgrad::io::write_chrome_trace(run_dir.path() + "/trace.json", profile->events());
      profile.reset();
    }
    progress.step(record);
    const auto evaluate = [&] {
      return evaluate_after(step, [&] { return signals.received() != 0; });
    };
    record.val_loss = evaluate();
    if (record.val_loss && !std::isfinite(*record.val_loss))
      throw NotFinite(fmt::format("step {}: after its update the validation loss is {}\n{}", step,
                                  *record.val_loss, first_anomaly(evaluate)));
    run_dir.log(record);
    if (is_last(step)) {
      val_loss_ = record.val_loss;
    } else if (record.val_loss) {
      progress.line(fmt::format("after {} steps: validation loss {:.4f} (estimate)", step + 1,
                                *record.val_loss));
      save(run_dir, step + 1);
    }
    ++step;
  }
  save(run_dir, step);
  if (signals.received() != 0)
    progress.line(fmt::format("Stopped by {} after {} steps; the model is in {}.",
                              signals.received() == SIGINT ? "SIGINT" : "SIGTERM",
                              format_count(step), run_dir.checkpoint()));
  return signals.received();
}

int Training::run(RunDir& run_dir) {
  try {
    if (const int signal = make_steps(run_dir); signal != 0)
      return 128 + signal;
  } catch (const NotFinite& error) {
    const bool saved = std::filesystem::exists(run_dir.checkpoint());
    throw NotFinite(
        fmt::format("{}\n{}", error.what(),
                    saved ? fmt::format("The last good checkpoint, after {} steps, is {}.",
                                        format_count(saved_steps_), run_dir.checkpoint())
                          : "There is no checkpoint yet."));
  }
  if (!val_loss_)  // there was no step
    val_loss_ = validation_loss(model_, source_.ids.validation);
  print_validation_loss(*val_loss_, source_, recipe_.block_size);
  fmt::print("The run is in {}. What the model writes:\n", run_dir.path());
  SampleOptions sample;
  sample.seed = options_.seed;
  print_sample(model_, source_.characters, sample);
  return 0;
}

}  // namespace

int train(const TrainOptions& options) {
  check_memory(options);
  const Source source = open_source(options.data, options.recipe.block_size);
  check_memory(options, source.characters.size());
  // From here on, the draws are those of the reference: the weights, then batch after batch.
  xgrad::manual_seed(options.seed);
  Training training(options, source);
  RunDir run_dir(options.out, format_config(options, source.characters.size()));
  training.describe();
  fmt::print("Run:   {}, about {}.\n", run_dir.path(),
             format_duration(std::max(1.0, training.estimated_seconds())));
  std::fflush(stdout);
  return training.run(run_dir);
}

}  // namespace char_transformer
