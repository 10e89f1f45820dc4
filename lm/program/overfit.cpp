// A test before a long run: can the model learn one batch by heart?

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "output.hpp"
#include "progress.hpp"

namespace program {
namespace {

constexpr double near = 0.05;  // nats above the lowest: nothing is left to learn

/// The lowest mean loss that any model can have on a batch, inputs and targets (B, T) and where the
/// document of each position begins: if documents with the same beginning continue differently, no
/// model can know how.
double lowest_loss(const xgrad::Indices& inputs, const xgrad::Indices& targets,
                   const xgrad::Indices& first) {
  const auto B = static_cast<std::size_t>(inputs.size(0)),
             T = static_cast<std::size_t>(inputs.size(1));
  std::map<std::vector<std::int64_t>, std::map<std::int64_t, double>> next;  // by beginning
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t t = 0; t < T; ++t) {
      const std::int64_t *const x = inputs.data() + b * T, *const y = targets.data() + b * T;
      ++next[{x + first.data()[b * T + t], x + t + 1}][y[t]];
    }
  double total = 0;
  for (const auto& [beginning, counts] : next) {
    double all = 0;
    for (const auto& [id, n] : counts)
      all += n;
    for (const auto& [id, n] : counts)
      total -= n * std::log(n / all);
  }
  return total / static_cast<double>(B * T);
}

}  // namespace

int overfit_one_batch(Run& run, Ranks& ranks) {
  Recipe& recipe = run.options.recipe;
  if (run.options.given.count("--max-iters") == 0)
    recipe.max_iters = 500;
  recipe.dropout = 0;
  recipe.weight_decay = 0;
  recipe.gradient_accumulation_steps = 1;
  recipe.min_lr = recipe.learning_rate;
  recipe.warmup_iters = 10;
  recipe.lr_decay_iters = static_cast<std::size_t>(many);
  xgrad::manual_seed(run.options.seed);
  Learner learner(run, ranks);
  const xgrad::Generator generator = xgrad::default_generator();
  xgrad::Generator again = generator;
  const xgrad::lm::Ids& text = run.dataset.ids.train;
  const auto starts = xgrad::lm::random_starts(text, recipe.block_size, recipe.batch_size, again);
  const auto [x, y] = xgrad::lm::blocks_at(text, recipe.block_size, starts);
  const auto& end = run.dataset.document_end;
  const double lowest = lowest_loss(
      x, y, end.empty() ? x * 0 : xgrad::lm::document_starts(text, recipe.block_size, starts, end));
  tell(describe(run, learner.model()));
  tell("One batch, without dropout, weight decay and schedule:\n");
  const StopSignals signals;
  Progress progress(0, recipe.max_iters, learner.tokens_per_step());
  double first = 0, last = 0;
  std::uint64_t steps = 0;
  bool well = false;
  while (steps < recipe.max_iters && !well) {
    if (const int signal = ranks.any_signal(signals.received()))
      return 128 + signal;
    xgrad::default_generator() = generator;  // the same batch
    const MetricsRow row = learner.make_step(steps);
    first = steps++ == 0 ? row.loss : first;
    last = row.loss;
    well = last - lowest < near;
    progress.step(row);
  }
  progress.clear();
  say(fmt::format(
      "overfit-one-batch: {}: loss {:.4f} -> {:.4f} in {}, where {:.4f} is the lowest possible.\n",
      well ? "passed" : "FAILED", first, last, format_count(steps, "step"), lowest));
  if (!well)
    say(fmt::format(
        "It may need more steps (--max-iters {}), another --learning-rate (it was {:g}), a smaller "
        "--batch-size or a larger --n-embd; or the program is wrong: a gradient (nn::gradcheck), a "
        "mask, or targets.\n",
        4 * recipe.max_iters, recipe.learning_rate));
  return well ? 0 : 1;
}

}  // namespace program
