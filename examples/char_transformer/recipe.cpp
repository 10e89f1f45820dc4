#include "recipe.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace char_transformer {

const Preset& find_preset(std::string_view name) {
  const auto* const found = std::ranges::find(presets, name, &Preset::name);
  return found == presets.end() ? presets.front() : *found;
}

xgrad::io::JsonObject to_json(const TrainOptions& options, std::size_t vocab_size) {
  xgrad::io::JsonObject config{{"preset", options.preset}};
  if (vocab_size > 0)
    config.emplace_back("vocab_size", vocab_size);
  for_each_field([&](const Field& field, auto member) {
    config.emplace_back(key_of(field.flag), options.recipe.*member);
  });
  config.emplace_back("seed", options.seed);
  return config;
}

Recipe read_recipe(const xgrad::io::Json& config, const std::string& path, bool sizes_only) {
  Recipe recipe;
  for_each_field([&]<class T>(const Field& field, T Recipe::*member) {
    if (sizes_only && field.keeps != Keeps::size)
      return;
    const std::optional<T> value = value_in<T>(config, field.flag, field.range);
    if (!value)
      throw xgrad::FileError(
          fmt::format("{}: its configuration has no '{}', or one that {} does not take: it does "
                      "not say {}",
                      path, key_of(field.flag), field.flag,
                      sizes_only ? "what model it is" : "how it is trained"));
    recipe.*member = *value;
  });
  return recipe;
}

void check_recipe(const Recipe& r) {
  if (r.n_embd % r.n_head != 0)
    throw UsageError(
        fmt::format("--n-embd {} is not divisible by --n-head {}", r.n_embd, r.n_head));
  if (r.min_lr > r.learning_rate)
    throw UsageError(
        fmt::format("--min-lr {} is above --learning-rate {}", r.min_lr, r.learning_rate));
  if (r.warmup_iters > r.lr_decay_iters)
    throw UsageError(fmt::format("--warmup-iters {} is beyond --lr-decay-iters {}", r.warmup_iters,
                                 r.lr_decay_iters));
}

}  // namespace char_transformer
