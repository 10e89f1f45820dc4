#include "recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <xgrad/autograd/error.hpp>

namespace char_transformer {
namespace {

using xgrad::io::Json;
using xgrad::io::JsonObject;

template <class T>
std::optional<T> value_in(const Json& config, const std::string& key, const Field<T>& field) {
  std::optional<T> value;
  if constexpr (std::is_same_v<T, double>) {
    value = config.number(key);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (const bool* const found = config.find<bool>(key))
      value = *found;
  } else {
    if (const auto* const found = config.find<std::uint64_t>(key))
      value = *found;
  }
  if constexpr (!std::is_same_v<T, bool>) {
    if (value && !field.range.contains(*value))
      value.reset();
  }
  return value;
}

}  // namespace

std::string key_of(std::string_view flag) {
  std::string key(flag.substr(flag.find_first_not_of('-')));
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string flag_of(std::string_view key) {
  std::string flag = fmt::format("--{}", key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

const Preset& find_preset(std::string_view name) {
  const auto* const found = std::ranges::find(presets, name, &Preset::name);
  return found == presets.end() ? presets.front() : *found;
}

const std::vector<FieldGroup>& recipe_fields() {
  using Size = Field<std::size_t>;
  using Real = Field<double>;
  using Bool = Field<bool>;
  static const std::vector<FieldGroup> groups = {
      {"Model",
       {Size{"--block-size", &Recipe::block_size, {1, 65536}, "characters that it looks back on"},
        Size{"--n-layer", &Recipe::n_layer, {1, 1024}, "blocks"},
        Size{"--n-head", &Recipe::n_head, {1, 1024}, "attention heads of a block"},
        Size{"--n-embd", &Recipe::n_embd, {1, 65536}, "width; a multiple of --n-head"},
        Real{"--dropout", &Recipe::dropout, {0, 1, false, true}, "probability of dropping"},
        Bool{"--bias", &Recipe::bias, {}, "biases in linear layers and norms"}}},
      {"Training",
       {Size{"--batch-size", &Recipe::batch_size, {1, 65536}, "blocks in a batch"},
        Size{"--max-iters", &Recipe::max_iters, {0, many}, "steps"},
        Real{"--learning-rate", &Recipe::learning_rate, {0, 10}, "the highest learning rate"},
        Real{"--min-lr", &Recipe::min_lr, {0, 10}, "where the learning rate ends"},
        Size{"--warmup-iters", &Recipe::warmup_iters, {0, many}, "steps on which it rises"},
        Size{"--lr-decay-iters",
             &Recipe::lr_decay_iters,
             {0, many},
             "step at which it reaches --min-lr"},
        Size{"--gradient-accumulation-steps",
             &Recipe::gradient_accumulation_steps,
             {1, 65536},
             "batches in a step"},
        Size{"--shards",
             &Recipe::shards,
             {1, 4096},
             "parts of a batch that are computed on their own, on a thread each"},
        Real{"--weight-decay", &Recipe::weight_decay, {0, 10}, "of matrices"},
        Real{"--beta1", &Recipe::beta1, {0, 1, false, true}, "AdamW's, for the gradient"},
        Real{"--beta2", &Recipe::beta2, {0, 1, false, true}, "AdamW's, for its square"},
        Real{"--grad-clip", &Recipe::grad_clip, {0, 1e9}, "largest norm of the gradient; 0: any"}}},
      {"Evaluation",
       {Size{"--eval-interval", &Recipe::eval_interval, {1, many}, "steps between evaluations"},
        Size{"--eval-iters", &Recipe::eval_iters, {1, many}, "batches of an evaluation"},
        Size{"--patience",
             &Recipe::patience,
             {0, many},
             "evaluations without improvement that end the run; 0: none do"}}}};
  return groups;
}

JsonObject to_json(const Recipe& recipe) {
  JsonObject object;
  for_each_field(
      [&](const auto& field) { object.emplace_back(key_of(field.flag), recipe.*field.member); });
  return object;
}

Recipe read_recipe(const Json& config, const std::string& path) {
  Recipe recipe;
  for_each_field([&](const auto& field) {
    const std::string key = key_of(field.flag);
    if (const auto value = value_in(config, key, field))
      recipe.*field.member = *value;
    // Older files have none.
    else if ((key != "patience" && key != "shards") || config.find(key) != nullptr)
      throw xgrad::FileError(
          fmt::format("{}: its configuration does not say how it is trained: '{}' is missing or "
                      "not what {} takes",
                      path, key, field.flag));
  });
  return recipe;
}

std::optional<std::string> contradiction(const Recipe& r) {
  if (r.n_embd % r.n_head != 0)
    return fmt::format("--n-embd {} is not divisible by --n-head {}", r.n_embd, r.n_head);
  if (r.min_lr > r.learning_rate)
    return fmt::format(
        "--min-lr {} is above --learning-rate {}: the learning rate would rise where it should "
        "fall",
        r.min_lr, r.learning_rate);
  if (r.warmup_iters > r.lr_decay_iters)
    return fmt::format(
        "--warmup-iters {} is beyond --lr-decay-iters {}: the learning rate would reach --min-lr "
        "while it rises",
        r.warmup_iters, r.lr_decay_iters);
  return std::nullopt;
}

}  // namespace char_transformer
