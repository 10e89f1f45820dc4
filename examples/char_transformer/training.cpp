#include "training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <xgrad/autograd/check/anomaly.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/data/batches.hpp>
#include <xgrad/optim/clip.hpp>

#include "trained_model.hpp"

namespace char_transformer {
namespace {

using xgrad::Generator;
using xgrad::Indices;
using xgrad::Tensor;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace

std::string format_row(const StepRecord& r) {
  std::string row = fmt::format(
      R"({{"step": {}, "loss": {:.9g}, "lr": {:.9g}, "grad_norm": {:.9g}, "ms": {:.3f})", r.step,
      r.loss, r.lr, r.grad_norm, r.ms);
  const auto add_loss = [&](const char* key, const std::optional<double>& loss) {
    if (loss)
      row += fmt::format(R"(, "{}": {:.9g})", key, *loss);
  };
  const auto add_text = [&](const char* key, const std::string& text) {
    if (!text.empty())
      row += fmt::format(R"(, "{}": "{}")", key, text);
  };
  add_loss("val_loss_before", r.val_loss_before);
  add_loss("val_loss", r.val_loss);
  add_text("val_loss_over", r.val_loss_over);
  add_loss("final_val_loss", r.final_val_loss);
  add_text("final_val_loss_over", r.final_val_loss_over);
  add_text("changes", r.changes);
  return row + "}";
}

std::optional<StepRecord> read_row(const xgrad::io::Json& row) {
  const auto* const step = row.find<std::uint64_t>("step");
  const auto loss = row.number("loss"), lr = row.number("lr"), norm = row.number("grad_norm"),
             ms = row.number("ms");
  if (step == nullptr || !loss || !lr || !norm || !ms)
    return std::nullopt;
  StepRecord record{.step = *step, .loss = *loss, .lr = *lr, .grad_norm = *norm, .ms = *ms};
  record.val_loss_before = row.number("val_loss_before");
  if (const auto* const changes = row.find<std::string>("changes"))
    record.changes = *changes;
  return record;
}

std::string first_anomaly(const std::function<void()>& again) {
  try {
    const xgrad::DetectAnomaly guard;
    again();
  } catch (const xgrad::AnomalyError& error) {
    return error.what();
  }
  return "run again with anomaly detection, every op's values and gradients are finite";
}

Training::Training(const Recipe& recipe, const Source& source, Ranks& ranks)
    : recipe_(recipe),
      source_(source),
      model_(model_config(recipe, source.characters.size())),
      parameters_(xgrad::nn::parameters(model_)),
      ranks_(ranks),
      optimizer_(xgrad::optim::decay_matrices(parameters_, {.lr = recipe.learning_rate,
                                                            .betas = {recipe.beta1, recipe.beta2},
                                                            .weight_decay = recipe.weight_decay})),
      rate_(xgrad::optim::warmup_cosine({.learning_rate = recipe.learning_rate,
                                         .min_lr = recipe.min_lr,
                                         .warmup_iters = recipe.warmup_iters,
                                         .lr_decay_iters = recipe.lr_decay_iters})) {
  ranks_.share(xgrad::nn::named_parameters(model_), recipe.shards);
}

std::optional<double> Training::measure(std::uint64_t seed,
                                        const std::function<bool()>& stop) const {
  // Milliseconds: for less than two rounds, and for more, so that training soon begins.
  constexpr double enough = 500, enough_of_rounds = 30;
  const Generator before = xgrad::default_generator();
  Generator generator(seed);
  // The shards that all threads have at a time.  Where each has as many, all rounds take as long.
  const std::size_t threads = xgrad::num_threads();
  const std::size_t shards = xgrad::parallel::shard_count(recipe_.batch_size, recipe_.shards);
  const std::size_t rounds = shards % threads == 0 ? shards / threads : 1;
  const std::size_t round = recipe_.batch_size / rounds;
  // All rows at once if that surely is quick, each weight being used for 6 operations a character;
  // else a row for each shard, and more as there is time for them.
  const std::size_t uses = xgrad::nn::num_parameters(model_) * round * recipe_.block_size;
  std::size_t rows = uses < 500'000'000 ? round : shards / rounds;
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  int whole = 0;
  // The first is slower than all that follow.
  for (int i = 0; i < 20 && spent < (whole < 2 ? enough : enough_of_rounds) && !stop(); ++i) {
    const auto begin = Clock::now();
    xgrad::parallel::backward(
        rows,
        loss_of(xgrad::text::random_starts(source_.ids.train, recipe_.block_size, rows, generator)),
        shards / rounds);
    for (Tensor p : parameters_)
      p.zero_grad();
    const double ms = milliseconds_since(begin);
    best = std::min(best, ms / static_cast<double>(rows));
    spent += ms;
    whole += rows == round ? 1 : 0;
    const auto times =
        static_cast<std::size_t>(std::max(1.0, (enough - spent) / std::max(ms, 1e-3)));
    rows = std::min(round, rows * times);
  }
  xgrad::default_generator() = before;
  if (spent == 0)
    return std::nullopt;
  return best / static_cast<double>(recipe_.block_size);
}

/// The mean loss of some of the blocks that begin there.
xgrad::parallel::ShardLoss Training::loss_of(std::vector<std::size_t> starts) const {
  return [this, starts = std::move(starts)](std::size_t begin, std::size_t end) {
    const auto [x, y] = xgrad::text::blocks_at(source_.ids.train, recipe_.block_size,
                                               std::span(starts).subspan(begin, end - begin));
    return model_.loss(x, y);
  };
}

/// Draws a batch and adds its share of the step's gradient; returns its share of the loss.
double Training::add_gradients_of_batch() {
  const auto loss = loss_of(xgrad::text::random_starts(
      source_.ids.train, recipe_.block_size, recipe_.batch_size, xgrad::default_generator()));
  const auto n = static_cast<double>(recipe_.gradient_accumulation_steps);
  return ranks_.backward(recipe_.batch_size, [&](std::size_t begin, std::size_t end) {
    const Tensor mean = loss(begin, end);
    return n == 1 ? mean : mean / n;
  });
}

/// Adds the gradient of the mean loss over the step's batches; returns that loss.
double Training::add_gradients() {
  double loss = 0;
  for (std::size_t i = 0; i < recipe_.gradient_accumulation_steps && std::isfinite(loss); ++i)
    loss += add_gradients_of_batch();
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
  const auto begin = Clock::now();
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
  record.ms = milliseconds_since(begin);
  return record;
}

}  // namespace char_transformer
