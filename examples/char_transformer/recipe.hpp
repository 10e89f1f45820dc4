#pragma once
// A recipe: the model and how it is trained.  Names and meanings are nanoGPT's.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include <xgrad/io/json.hpp>
#include <xgrad/parallel/shards.hpp>

#include "command.hpp"

namespace char_transformer {

struct Recipe {
  std::size_t block_size = 64;
  std::size_t batch_size = 12;
  std::size_t n_layer = 4;
  std::size_t n_head = 4;
  std::size_t n_embd = 128;
  double dropout = 0;
  bool bias = false;

  double learning_rate = 1e-3;
  double min_lr = 1e-4;
  std::size_t warmup_iters = 100;
  std::size_t lr_decay_iters = 2000;
  std::size_t max_iters = 2000;
  std::size_t gradient_accumulation_steps = 1;
  std::size_t shards = xgrad::parallel::default_shards;
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double grad_clip = 1;

  std::size_t eval_interval = 250;
  std::size_t eval_iters = 20;
  std::size_t patience = 0;  ///< evaluations without improvement that end the run; 0: none do
};

/// nanoGPT's recipe for a CPU.
inline constexpr Recipe nano{};
/// nanoGPT's recipe for a GPU.
inline constexpr Recipe baby{.block_size = 256,
                             .batch_size = 64,
                             .n_layer = 6,
                             .n_head = 6,
                             .n_embd = 384,
                             .dropout = 0.2,
                             .lr_decay_iters = 5000,
                             .max_iters = 5000,
                             .eval_iters = 200};
/// The smallest that people learn from, on names: a second or so, and every step can be followed.
/// Sizes and learning rate are those of Karpathy's microgpt.
inline constexpr Recipe micro{.block_size = 16,
                              .batch_size = 16,
                              .n_layer = 1,
                              .n_head = 4,
                              .n_embd = 16,
                              .learning_rate = 1e-2,
                              .min_lr = 1e-3,
                              .warmup_iters = 0,
                              .lr_decay_iters = 1000,
                              .max_iters = 1000};

/// What --preset takes.
struct Preset {
  const char* name;
  Recipe recipe;
  bool names;  ///< whether it is trained on names where no text is given, and not on scenes
};
inline constexpr std::array<Preset, 3> presets{
    {{"nano", nano, false}, {"baby", baby, false}, {"micro", micro, true}}};
/// That of a name; nano's for a name that is not known, as in files of other programs.
const Preset& find_preset(std::string_view name);

/// "--block-size" as "block_size", as configuration files have it.
std::string key_of(std::string_view flag);
/// The other way.
std::string flag_of(std::string_view key);

/// A field of a recipe, as the command line and configurations know it.
template <class T>
struct Field {
  const char* flag;  ///< "--block-size"; the key in JSON is "block_size"
  T Recipe::*member;
  Range<T> range;
  const char* help;
};
struct FieldGroup {
  const char* heading;
  std::vector<std::variant<Field<std::size_t>, Field<double>, Field<bool>>> fields;
};
const std::vector<FieldGroup>& recipe_fields();

/// Calls f(field) with every Field.
template <class F>
void for_each_field(F&& f) {
  for (const FieldGroup& group : recipe_fields())
    for (const auto& field : group.fields)
      std::visit(f, field);
}

/// A recipe under its keys, in the order of the fields.
xgrad::io::JsonObject to_json(const Recipe& recipe);
/// Reads one.  FileError if a field is missing or not within its range; `path` is named in it.
Recipe read_recipe(const xgrad::io::Json& config, const std::string& path);

/// What is wrong with fields together, if something is: "--n-embd 130 is not divisible by ...".
std::optional<std::string> contradiction(const Recipe& recipe);

}  // namespace char_transformer
