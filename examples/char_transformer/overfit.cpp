// The check that people make before a long run: can the model learn one batch by heart?

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "describe.hpp"
#include "progress.hpp"
#include "stop.hpp"

namespace char_transformer {
namespace {

constexpr std::size_t usual_steps = 500;
constexpr double near = 0.05;  // nats above the lowest: nothing is left to learn

Recipe recipe_for_one_batch(const TrainOptions& options) {
  Recipe recipe = options.recipe;
  if (options.given.count("--max-iters") == 0)
    recipe.max_iters = usual_steps;
  recipe.dropout = 0;
  recipe.weight_decay = 0;
  recipe.gradient_accumulation_steps = 1;
  recipe.min_lr = recipe.learning_rate;
  recipe.warmup_iters = 10;
  recipe.lr_decay_iters = many;
  return recipe;
}

/// The lowest mean loss that any model can have on a batch, inputs and targets (B, T): where blocks
/// that begin alike go on in different ways, it cannot know how.
double lowest_loss(const xgrad::Indices& inputs, const xgrad::Indices& targets) {
  const auto B = static_cast<std::size_t>(inputs.size(0)),
             T = static_cast<std::size_t>(inputs.size(1));
  const std::int64_t *x = inputs.data(), *y = targets.data();
  std::vector<std::size_t> group(B, 0);  // of blocks that are alike so far
  double total = 0;
  for (std::size_t t = 0; t < T; ++t) {
    std::map<std::pair<std::size_t, std::int64_t>, std::size_t> numbers;
    for (std::size_t b = 0; b < B; ++b)
      group[b] = numbers.emplace(std::pair(group[b], x[b * T + t]), numbers.size()).first->second;
    std::map<std::size_t, double> count;
    std::map<std::pair<std::size_t, std::int64_t>, double> next;
    for (std::size_t b = 0; b < B; ++b) {
      ++count[group[b]];
      ++next[{group[b], y[b * T + t]}];
    }
    for (const auto& [key, n] : next)
      total -= n * std::log(n / count[key.first]);
  }
  return total / static_cast<double>(B * T);
}

}  // namespace

int overfit_one_batch(Start& start, Ranks& ranks) {
  start.options.recipe = recipe_for_one_batch(start.options);
  const Recipe& recipe = start.options.recipe;
  xgrad::manual_seed(start.options.seed);
  Training training(start, ranks);
  const auto label = [](const std::string& name, const std::string& text) { tell(name, text); };
  describe_model(start, training, label);

  const xgrad::Generator generator = xgrad::default_generator();
  xgrad::Generator again = generator;
  const auto [x, y] = xgrad::text::random_batch(start.source.ids.train, recipe.block_size,
                                                recipe.batch_size, again);
  const double lowest = lowest_loss(x, y);
  tell("Check",
       fmt::format("up to {} steps on one batch of {} of {}, without dropout, weight "
                   "decay and schedule; the lowest loss possible on it is {:.4f}.",
                   format_count(recipe.max_iters), recipe.batch_size, recipe.block_size, lowest));
  const StopSignals signals;
  Progress progress(0, recipe.max_iters, training.tokens_per_step());
  double first = 0, last = 0;
  std::uint64_t steps = 0;
  for (bool well = false; steps < recipe.max_iters && !well;) {
    if (const int signal = ranks.any_signal(signals.received()))
      return 128 + signal;
    xgrad::default_generator() = generator;  // the same batch
    const StepRecord record = training.make_step(steps);
    first = steps++ == 0 ? record.loss : first;
    last = record.loss;
    well = last - lowest < near;
    progress.step(record);
  }
  const bool well = steps > 0 && last - lowest < near;
  progress.finish();
  say(fmt::format(
      "overfit-one-batch: {}: loss {:.4f} -> {:.4f} in {}, where {:.4f} is the lowest possible.\n",
      well ? "passed" : "FAILED", first, last, format_count(steps, "step", "steps"), lowest));
  if (!well)
    say(fmt::format(
        "What this may mean, the likeliest first:\n"
        "- it needs more steps: --max-iters {};\n"
        "- the learning rate is too high or too low: --learning-rate (it was {:g});\n"
        "- the model is too small for {} blocks of {} characters: --batch-size 2, or a larger "
        "--n-embd;\n"
        "- the program is wrong: a gradient (nn::gradcheck, nn::check_layer), a mask, or "
        "targets.\n",
        4 * recipe.max_iters, recipe.learning_rate, recipe.batch_size, recipe.block_size));
  return well ? 0 : 1;
}

}  // namespace char_transformer
