// Recipes, and rules for combining the flags of `train`.

#include "recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "output.hpp"

namespace program {

const Preset& find_preset(std::string_view name) {
  const auto* const found = std::ranges::find(presets, name, &Preset::name);
  return found == presets.end() ? presets.front() : *found;
}

xgrad::io::JsonObject to_json(const TrainOptions& options, std::size_t vocab_size) {
  xgrad::io::JsonObject config{{"preset", options.preset}};
  if (const std::size_t size = options.vocab_size.value_or(vocab_size); size > 0)
    config.emplace_back("vocab_size", size);
  for_each_field([&](const Field& field, auto member) {
    config.emplace_back(key_of(field.flag), options.recipe.*member);
  });
  if (!options.document_end.empty())
    config.emplace_back("document_end", options.document_end);
  if (options.lora_rank > 0) {
    config.emplace_back("lora_rank", options.lora_rank);
    config.emplace_back("lora_alpha", options.lora_alpha);
    config.emplace_back("lora_targets", options.lora_targets);
  }
  if (options.dtype != "float32")
    config.emplace_back("dtype", options.dtype);
  config.emplace_back("seed", options.seed);
  return config;
}

Recipe read_recipe(const xgrad::io::Json& config, const std::string& path, bool sizes_only) {
  Recipe recipe;
  for_each_field([&]<class T>(const Field& field, T Recipe::* member) {
    if (sizes_only && field.on_resume != OnResume::size)
      return;
    const std::optional<T> value = value_in<T>(config, field.flag, field.range);
    if (!value)
      fail<FileError>(
          "{}: its configuration has no '{}', or one that {} does not accept: it does not say {}",
          path, key_of(field.flag), field.flag,
          sizes_only ? "what model it is" : "how it is trained");
    recipe.*member = *value;
  });
  return recipe;
}

void check_recipe(const Recipe& r) {
  if (r.n_embd % r.n_head != 0)
    fail<UsageError>("--n-embd {} is not divisible by --n-head {}", r.n_embd, r.n_head);
  if (r.min_lr > r.learning_rate)
    fail<UsageError>("--min-lr {} is above --learning-rate {}", r.min_lr, r.learning_rate);
  if (r.warmup_iters > r.lr_decay_iters)
    fail<UsageError>("--warmup-iters {} is beyond --lr-decay-iters {}", r.warmup_iters,
                     r.lr_decay_iters);
}

void complete(TrainOptions& train) {
  const Recipe& preset = find_preset(train.preset).recipe;
  for_each_field([&](const Field& field, auto member) {
    if (train.given.count(field.flag) == 0)
      train.recipe.*member = preset.*member;
  });
  Recipe& recipe = train.recipe;
  if (train.given.count("--min-lr") == 0)  // 0.0003 of 0.003, not the double next to it
    recipe.min_lr = std::strtod(fmt::format("{:.15g}", recipe.learning_rate / 10).c_str(), nullptr);
  if (train.given.count("--lr-decay-iters") == 0)
    recipe.lr_decay_iters = recipe.max_iters;
  if (train.given.count("--warmup-iters") == 0)
    recipe.warmup_iters =
        std::min({preset.warmup_iters, recipe.max_iters / 20, recipe.lr_decay_iters});

  if (train.tokens == "bpe")
    train.vocab_size = train.vocab_size.value_or(usual_vocab_size);
  else if (train.vocab_size)
    throw UsageError(
        "--vocab-size requires --tokens bpe: the text sets the size of a "
        "vocabulary of characters");

  if (!train.init_from.empty() && train.resumes_by_name())
    fail<UsageError>(
        "--init-from begins a new run, and --resume {} continues one: omit one of them",
        *train.resume);
  // Tests values, because a run's config.json contains flags with their default values.
  check<UsageError>(!train.overfit_one_batch || (!train.resume && train.out.empty() &&
                                                 !train.save_interval && !train.profile),
                    "--overfit-one-batch is a check that saves nothing: omit --resume, --out, "
                    "--save-interval and --profile");
  if (!train.resume && train.init_from.empty())
    check_recipe(train.recipe);
}

}  // namespace program
