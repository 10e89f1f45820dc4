#include "validation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <xgrad/data/batches.hpp>

#include "notes.hpp"
#include "trained_model.hpp"

namespace char_transformer {

Validation::Validation(const TrainOptions& options, const Source& source, Training& training,
                       Progress& progress, std::function<bool()> stop)
    : options_(options),
      source_(source),
      training_(training),
      progress_(progress),
      stop_([&progress, stop = std::move(stop)](double done) {
        progress.evaluating(done);
        return stop();
      }),
      all_blocks_(xgrad::text::block_count(source.ids.validation, options.recipe.block_size)),
      blocks_(final_blocks(options, source.ids.validation)) {}

std::optional<double> Validation::finite(
    std::uint64_t steps, const std::function<std::optional<double>()>& measure) const {
  const std::optional<double> loss = measure();
  if (loss && !std::isfinite(*loss))
    throw NotFinite(fmt::format(
        "{} the validation loss is {}\n{}",
        steps == 0 ? "before the first step" : fmt::format("step {}: after its update", steps - 1),
        *loss, first_anomaly([&] { measure(); })));
  return loss;
}

std::optional<double> Validation::estimate(std::uint64_t steps) const {
  const Recipe& recipe = options_.recipe;
  return finite(steps, [&] {
    return estimate_loss(training_.ranks(), training_.model(), source_.ids.validation,
                         recipe.batch_size, recipe.eval_iters, options_.seed, stop_);
  });
}

std::optional<double> Validation::whole(std::uint64_t steps) const {
  progress_.line("validation over " + format_blocks(blocks_, all_blocks_));
  return finite(steps, [&] {
    return block_loss(training_.ranks(), training_.model(), source_.ids.validation, blocks_, stop_);
  });
}

void Validation::check_model(std::uint64_t steps, bool is_measured) const {
  if (const std::string wrong = bad_weights(); !wrong.empty())
    throw NotFinite(fmt::format("step {}: after its update {}", steps - 1, wrong));
  if (is_measured)
    return;
  finite(steps, [&] {
    return estimate_loss(training_.ranks(), training_.model(), source_.ids.validation,
                         options_.recipe.batch_size, 1, options_.seed,
                         [](double) { return false; });
  });
}

std::string Validation::bad_weights() const {
  return not_finite(xgrad::nn::state_dict(training_.model()));
}

StepRecord Validation::with_kinds(StepRecord record) const {
  if (record.val_loss || record.val_loss_before)
    record.val_loss_over = format_batches(options_.recipe.eval_iters);
  if (record.final_val_loss)
    record.final_val_loss_over = format_blocks(blocks_, all_blocks_);
  return record;
}

void Validation::print(double loss) const {
  print_loss("val_loss", loss,
             fmt::format("{} of {}{}", format_blocks(blocks_, all_blocks_), source_.validation_name,
                         blocks_ < all_blocks_ ? "; --val-blocks 0 takes all" : ""),
             source_.entropy(blocks_ * options_.recipe.block_size));
}

}  // namespace char_transformer
