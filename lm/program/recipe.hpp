#pragma once
// A recipe (the model and its training) and the other options of `train`.  Names and meanings are
// nanoGPT's.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <xgrad/io/json.hpp>

#include "flags.hpp"

namespace program {

struct Recipe {
  std::size_t block_size = 64, batch_size = 12, n_layer = 4, n_head = 4, n_embd = 128;
  double dropout = 0;
  bool bias = false;

  double learning_rate = 1e-3, min_lr = 1e-4;
  std::size_t warmup_iters = 100, lr_decay_iters = 2000, max_iters = 2000;
  std::size_t gradient_accumulation_steps = 1;
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.99, grad_clip = 1;

  std::size_t eval_interval = 250, eval_iters = 20;
};

/// A recipe for --preset.
struct Preset {
  const char* name;
  Recipe recipe;
  bool names = false;  ///< trained on names by default, not on scenes
};
inline constexpr std::array<Preset, 3> presets{{
    // nanoGPT's recipe for a CPU.
    {"nano", {}},
    // nanoGPT's recipe for a GPU.
    {"baby",
     {.block_size = 256,
      .batch_size = 64,
      .n_layer = 6,
      .n_head = 6,
      .n_embd = 384,
      .dropout = 0.2,
      .lr_decay_iters = 5000,
      .max_iters = 5000,
      .eval_iters = 200}},
    // The smallest that people learn from; sizes and learning rate are those of Karpathy's
    // microgpt.
    {"micro",
     {.block_size = 16,
      .batch_size = 16,
      .n_layer = 1,
      .n_head = 4,
      .n_embd = 16,
      .learning_rate = 1e-2,
      .min_lr = 1e-3,
      .warmup_iters = 0,
      .lr_decay_iters = 1000,
      .max_iters = 1000},
     true},
}};
/// The preset of a name; nano for an unknown name, as in files of other programs.
const Preset& find_preset(std::string_view name);

/// Where a field's value comes from when a run resumes or begins with a model's weights: the model
/// (size), the run (recipe), the run unless the flag is given, or the flags alone (nothing).
enum class OnResume { size, recipe, unless_given, nothing };

/// A field of a recipe: its flag, which is also its JSON key, and its properties.
struct Field {
  const char* flag;  ///< "--block-size"; the key is "block_size"
  std::variant<std::size_t Recipe::*, double Recipe::*, bool Recipe::*> member;
  Range range;
  const char *help, *group;
  OnResume on_resume = OnResume::recipe;
  const char* follows = "";  ///< what its default depends on; empty: the preset alone
};

namespace table {
using R = Recipe;
using enum OnResume;
constexpr const char *m = "Model", *t = "Training", *e = "Evaluation";
constexpr Range extents{1, 65536}, depths{1, 1024}, rates{0, 10}, from_0{0, many}, from_1{1, many};
inline constexpr Field fields[] = {
    {"--block-size", &R::block_size, extents, "characters or tokens that it looks back on", m,
     size},
    {"--n-layer", &R::n_layer, depths, "blocks", m, size},
    {"--n-head", &R::n_head, depths, "attention heads of a block", m, size},
    {"--n-embd", &R::n_embd, extents, "width; a multiple of --n-head", m, size},
    {"--dropout", &R::dropout, probability, "probability of dropping", m},
    {"--bias", &R::bias, {}, "biases in linear layers and norms", m, size},
    {"--batch-size", &R::batch_size, extents, "blocks in a batch", t},
    {"--max-iters", &R::max_iters, from_0, "steps", t, nothing},
    {"--learning-rate", &R::learning_rate, rates, "the highest", t, unless_given},
    {"--min-lr", &R::min_lr, rates, "where the learning rate ends", t, unless_given,
     "a tenth of --learning-rate"},
    {"--warmup-iters", &R::warmup_iters, from_0, "steps of its rise", t, unless_given,
     "a twentieth of --max-iters, at most 100; micro: 0"},
    {"--lr-decay-iters", &R::lr_decay_iters, from_0, "step at which it reaches --min-lr", t,
     unless_given, "--max-iters"},
    {"--gradient-accumulation-steps", &R::gradient_accumulation_steps, extents, "batches in a step",
     t},
    {"--weight-decay", &R::weight_decay, rates, "of matrices", t},
    {"--beta1", &R::beta1, probability, "AdamW's, for the gradient", t},
    {"--beta2", &R::beta2, probability, "AdamW's, for its square", t},
    {"--grad-clip", &R::grad_clip, from_0, "largest norm of the gradient; 0: any", t},
    {"--eval-interval", &R::eval_interval, from_1, "steps between evaluations", e, unless_given},
    {"--eval-iters", &R::eval_iters, from_1, "batches of an evaluation", e}};
}  // namespace table

/// Calls f(field, member) for every field.
template <class F>
void for_each_field(F&& f) {
  for (const Field& field : table::fields)
    std::visit([&](auto member) { f(field, member); }, field.member);
}

/// The command line of `train`.
struct TrainOptions {
  std::string program = "xgrad";  ///< as it was called
  std::string launcher = {};      ///< the words before it, of several ranks
  std::string data, val_data;     ///< empty: the embedded corpus, and the last tenth of `data`
  std::string out;                ///< empty: a new folder under runs/
  std::string init_from;          ///< a checkpoint; empty: random weights
  std::string document_end;       ///< a text or an id; empty: the text is one document
  std::string base;               ///< of adapters that are read; empty: as they say
  std::size_t lora_rank = 0;      ///< of adapters beside its weights; 0: the weights are trained
  double lora_alpha = 0;          ///< 0: as the rank
  std::string lora_targets = "all-linear";
  std::string preset = "nano";
  Recipe recipe;
  std::string tokens = "characters";      ///< or "bpe"
  std::optional<std::size_t> vocab_size;  ///< of "bpe", as requested
  std::string dtype = "float32";          ///< of products' operands; or "bfloat16"
  std::uint64_t seed = 1337;
  std::size_t threads = 0;
  bool profile = false, dry_run = false, overfit_one_batch = false, quiet = false;
  std::optional<std::string> resume;           ///< a folder, a checkpoint, or empty or "auto"
  std::optional<std::size_t> save_interval;    ///< none: at each evaluation
  std::optional<std::size_t> sample_interval;  ///< none: at each evaluation; 0: never
  std::optional<std::size_t> sample_tokens;    ///< of the sample at the end; none: the default
  std::string sample_prompt;                   ///< empty: as of SampleOptions
  std::set<std::string> given;                 ///< the flags in the command line or --config

  /// Whether --resume names a run and not just the latest.
  bool resumes_by_name() const { return resume && !resume->empty() && *resume != "auto"; }
};

/// Counts that change none of a run's numbers; config.json stores them.
struct Count {
  const char* flag;
  std::optional<std::size_t> TrainOptions::* member;
  double least;
  const char* help;
};
inline constexpr std::array<Count, 3> counts{{
    {"--save-interval", &TrainOptions::save_interval, 1, "steps between saves [each evaluation]"},
    {"--sample-interval", &TrainOptions::sample_interval, 0,
     "steps between samples of DIR/samples.jsonl; 0: none [each evaluation]"},
    {"--sample-tokens", &TrainOptions::sample_tokens, 0,
     "characters or tokens of the sample at the end; 0: none [500; of a pretrained model 64]"},
}};

/// The value of a key, if a flag with this range accepts it.
template <class T>
std::optional<T> value_in(const xgrad::io::Json& config, const char* flag, Range range) {
  const xgrad::io::Json* const found = config.find(key_of(flag));
  if (found == nullptr)
    return {};
  if constexpr (std::is_same_v<T, bool>)
    return found->as<bool>() ? std::optional(*found->as<bool>()) : std::nullopt;
  const auto value = found->number();
  const bool fits = value && range.contains(*value) &&
                    (std::is_same_v<T, double> || found->as<std::uint64_t>() != nullptr);
  return fits ? std::optional(static_cast<T>(*value)) : std::nullopt;
}

inline constexpr Range vocab_sizes{257, 1e6};  ///< of --tokens bpe: more than there are bytes
inline constexpr std::size_t usual_vocab_size = 1024;

/// Everything that determines a run's results, and the size of the vocabulary.
xgrad::io::JsonObject to_json(const TrainOptions& options, std::size_t vocab_size);
/// A recipe as to_json() writes it, or only the model's sizes of it.  FileError, which names
/// `path`, if a field is missing or out of range.
Recipe read_recipe(const xgrad::io::Json& config, const std::string& path, bool sizes_only = false);

/// Sets fields whose flags are not `given` to the preset's values, or derives them from others.
/// UsageError for flags that exclude each other.
void complete(TrainOptions& train);

/// UsageError if fields contradict each other: "--n-embd 130 is not divisible by ...".
void check_recipe(const Recipe& recipe);

}  // namespace program
