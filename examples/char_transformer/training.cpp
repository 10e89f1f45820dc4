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
#include <xgrad/optim/clip.hpp>

#include "start.hpp"
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

std::string first_anomaly(const std::function<void()>& again) {
  try {
    const xgrad::DetectAnomaly guard;
    again();
  } catch (const xgrad::AnomalyError& error) {
    return error.what();
  }
  return "run again with anomaly detection, every op's values and gradients are finite";
}

Training::Training(Start& start, Ranks& ranks)
    : recipe_(start.options.recipe),
      source_(start.source),
      model_(model_config(recipe_, source_.characters.size())),
      parameters_(xgrad::nn::parameters(model_)),
      ranks_(ranks),
      optimizer_(xgrad::optim::decay_matrices(parameters_, {.lr = recipe_.learning_rate,
                                                            .betas = {recipe_.beta1, recipe_.beta2},
                                                            .weight_decay = recipe_.weight_decay})),
      rate_(xgrad::optim::warmup_cosine({.learning_rate = recipe_.learning_rate,
                                         .min_lr = recipe_.min_lr,
                                         .warmup_iters = recipe_.warmup_iters,
                                         .lr_decay_iters = recipe_.lr_decay_iters})) {
  ranks_.share(xgrad::nn::named_parameters(model_), recipe_.shards);
  if (start.resumed)
    xgrad::io::restore(*start.from, model_, optimizer_);
  else if (start.from)
    xgrad::io::load_state(model_, start.from->model, start.from->path);
  start.from.reset();
}

std::optional<double> Training::measure(std::uint64_t seed,
                                        const std::function<bool()>& stop) const {
  const Generator before = xgrad::default_generator();
  Generator generator(seed);
  // The shards that all threads have at a time.  Where each has as many, all rounds take as long.
  const std::size_t threads = xgrad::num_threads();
  const std::size_t shards = xgrad::parallel::shard_count(recipe_.batch_size, recipe_.shards);
  const std::size_t rounds = shards % threads == 0 ? shards / threads : 1;
  const std::size_t most = recipe_.batch_size / rounds;
  std::optional<double> best;
  double spent = 0;
  int whole = 0;
  // Few rows first, which may take long; and the first is slower than all that follow.
  for (std::size_t rows = shards / rounds; whole < 3 && spent < 500 && !stop();
       rows = std::min(most, 4 * rows)) {
    const auto begin = Clock::now();
    xgrad::parallel::backward(
        rows,
        loss_of(xgrad::text::random_starts(source_.ids.train, recipe_.block_size, rows, generator)),
        shards / rounds);
    for (Tensor p : parameters_)
      p.zero_grad();
    const double ms = milliseconds_since(begin);
    best = std::min(best.value_or(ms), ms / static_cast<double>(rows * recipe_.block_size));
    spent += ms;
    whole += rows == most ? 1 : 0;
  }
  xgrad::default_generator() = before;
  return best;
}

/// The mean loss of some of the blocks that begin there.
xgrad::parallel::ShardLoss Training::loss_of(std::vector<std::size_t> starts) const {
  return [this, starts = std::move(starts)](std::size_t begin, std::size_t end) {
    const auto [x, y] = xgrad::text::blocks_at(source_.ids.train, recipe_.block_size,
                                               std::span(starts).subspan(begin, end - begin));
    return model_.loss(x, y);
  };
}

/// Draws the step's batches and adds the gradient of the mean loss over them; returns that loss.
double Training::add_gradients() {
  const std::size_t batches = recipe_.gradient_accumulation_steps;
  const auto n = static_cast<double>(batches);
  double sum = 0;
  for (std::size_t i = 0; i < batches && std::isfinite(sum); ++i) {
    const auto loss = loss_of(xgrad::text::random_starts(
        source_.ids.train, recipe_.block_size, recipe_.batch_size, xgrad::default_generator()));
    sum += ranks_.backward(recipe_.batch_size, [&](std::size_t begin, std::size_t end) {
      const Tensor mean = loss(begin, end);
      return n == 1 ? mean : mean / n;
    });
  }
  return sum;
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
