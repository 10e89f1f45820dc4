#include "validation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <xgrad/data/batches.hpp>

#include "notes.hpp"
#include "trained_model.hpp"

namespace char_transformer {

Validation::Validation(const TrainOptions& options, const Source& source, Training& training,
                       Stop stop)
    : options_(options),
      source_(source),
      training_(training),
      stop_(std::move(stop)),
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
  return finite(steps, [&] {
    return block_loss(training_.ranks(), training_.model(), source_.ids.validation, blocks_, stop_);
  });
}

void Validation::check_model(std::uint64_t steps, bool is_measured) const {
  if (const std::string wrong = not_finite(xgrad::nn::state_dict(training_.model()));
      !wrong.empty())
    throw NotFinite(fmt::format("step {}: after its update {}", steps - 1, wrong));
  if (is_measured)
    return;
  finite(steps, [&] {
    return estimate_loss(training_.ranks(), training_.model(), source_.ids.validation,
                         options_.recipe.batch_size, 1, options_.seed,
                         [](double) { return false; });
  });
}

std::string Validation::estimated_over() const {
  return format_batches(options_.recipe.eval_iters);
}

std::string Validation::whole_over() const { return format_blocks(blocks_, all_blocks_); }

void Validation::print(double loss) const {
  print_loss("val_loss", loss,
             fmt::format("{} of {}{}", whole_over(), source_.validation_name,
                         blocks_ < all_blocks_ ? "; --val-blocks 0 takes all" : ""),
             source_.entropy(blocks_ * options_.recipe.block_size));
}

}  // namespace char_transformer
