#pragma once
// A recipe, the model and how it is trained, and what else the command line of `train` can say.
// Names and meanings are nanoGPT's.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
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

/// What becomes of a field when a run goes on, or begins with the weights of a model.
enum class Keeps { size, recipe, unless_allowed, nothing };

/// A field of a recipe: its flag, which is its key in JSON, and all that there is to know of it.
struct Field {
  const char* flag;  ///< "--block-size"; the key is "block_size"
  std::variant<std::size_t Recipe::*, double Recipe::*, bool Recipe::*> member;
  Range range;
  const char* help;
  const char* group;
  Keeps keeps = Keeps::recipe;
};
inline constexpr Range probability{0, 1, false, true};
inline constexpr std::array<Field, 21> fields{{
    {"--block-size",
     &Recipe::block_size,
     {1, 65536},
     "characters that it looks back on",
     "Model",
     Keeps::size},
    {"--n-layer", &Recipe::n_layer, {1, 1024}, "blocks", "Model", Keeps::size},
    {"--n-head", &Recipe::n_head, {1, 1024}, "attention heads of a block", "Model", Keeps::size},
    {"--n-embd",
     &Recipe::n_embd,
     {1, 65536},
     "width; a multiple of --n-head",
     "Model",
     Keeps::size},
    {"--dropout", &Recipe::dropout, probability, "probability of dropping", "Model"},
    {"--bias", &Recipe::bias, {}, "biases in linear layers and norms", "Model", Keeps::size},
    {"--batch-size", &Recipe::batch_size, {1, 65536}, "blocks in a batch", "Training"},
    {"--max-iters", &Recipe::max_iters, {0, many}, "steps", "Training", Keeps::nothing},
    {"--learning-rate",
     &Recipe::learning_rate,
     {0, 10},
     "the highest learning rate",
     "Training",
     Keeps::unless_allowed},
    {"--min-lr",
     &Recipe::min_lr,
     {0, 10},
     "where the learning rate ends",
     "Training",
     Keeps::unless_allowed},
    {"--warmup-iters",
     &Recipe::warmup_iters,
     {0, many},
     "steps on which it rises",
     "Training",
     Keeps::unless_allowed},
    {"--lr-decay-iters",
     &Recipe::lr_decay_iters,
     {0, many},
     "step at which it reaches --min-lr",
     "Training",
     Keeps::unless_allowed},
    {"--gradient-accumulation-steps",
     &Recipe::gradient_accumulation_steps,
     {1, 65536},
     "batches in a step",
     "Training"},
    {"--shards",
     &Recipe::shards,
     {1, 4096},
     "parts of a batch that are computed on their own, on a thread each",
     "Training"},
    {"--weight-decay", &Recipe::weight_decay, {0, 10}, "of matrices", "Training"},
    {"--beta1", &Recipe::beta1, probability, "AdamW's, for the gradient", "Training"},
    {"--beta2", &Recipe::beta2, probability, "AdamW's, for its square", "Training"},
    {"--grad-clip",
     &Recipe::grad_clip,
     {0, 1e9},
     "largest norm of the gradient; 0: any",
     "Training"},
    {"--eval-interval",
     &Recipe::eval_interval,
     {1, many},
     "steps between evaluations",
     "Evaluation",
     Keeps::unless_allowed},
    {"--eval-iters", &Recipe::eval_iters, {1, many}, "batches of an evaluation", "Evaluation"},
    {"--patience",
     &Recipe::patience,
     {0, many},
     "evaluations without improvement that end the run; 0: none do",
     "Evaluation",
     Keeps::nothing},
}};

/// Calls f(field, member) with every field.
template <class F>
void for_each_field(F&& f) {
  for (const Field& field : fields)
    std::visit([&](auto member) { f(field, member); }, field.member);
}

/// What the command line of `train` says.
struct TrainOptions {
  std::string program = "char_transformer";  ///< as it was called
  std::string launcher = {};                 ///< the words before it, of several ranks
  std::string data, val_data;  ///< empty: the embedded corpus, and the last tenth of `data`
  std::string out;             ///< empty: a new folder under runs/
  std::string init_from;       ///< a checkpoint; empty: random weights
  std::string preset = "nano";
  Recipe recipe;
  std::uint64_t seed = 1337;
  std::size_t threads = 0;
  bool profile = false, dry_run = false, overfit_one_batch = false;
  bool quiet = false, verbose = false;
  bool check_memory = true;                    ///< refuse what does not fit
  std::optional<std::string> resume;           ///< a folder, a checkpoint, or empty or "auto"
  bool allow_changes = false;                  ///< of a run that goes on
  std::optional<std::size_t> save_interval;    ///< none: at each evaluation
  std::optional<std::size_t> keep;             ///< none: 0, or what the run had
  std::optional<std::size_t> val_blocks;       ///< of the last validation; 0: all
  std::optional<std::size_t> sample_interval;  ///< none: at each evaluation; 0: never
  std::string sample_prompt;                   ///< empty: as of SampleOptions
  std::set<std::string> given;                 ///< the flags that the command line or --config has

  /// Whether --resume names what to go on with, and not just whatever there is.
  bool resumes_by_name() const { return resume && !resume->empty() && *resume != "auto"; }
};

/// Where --val-blocks is not given.
inline constexpr std::size_t usual_val_blocks = 2048;

/// Counts that change nothing of a run's numbers; it remembers them in config.json.
struct Count {
  const char* flag;
  std::optional<std::size_t> TrainOptions::*member;
  std::size_t least;
  const char* help;
};
inline constexpr std::array<Count, 4> counts{{
    {"--save-interval", &TrainOptions::save_interval, 1, "steps between saves [each evaluation]"},
    {"--keep", &TrainOptions::keep, 0, "keep the last N saves, too [0]"},
    {"--val-blocks", &TrainOptions::val_blocks, 0,
     "blocks of the validation after the last step; 0: all [2048]"},
    {"--sample-interval", &TrainOptions::sample_interval, 0,
     "steps between samples of DIR/samples.jsonl; 0: none [each evaluation]"},
}};

/// The value of a key, if it is one that a flag with this range takes.
template <class T>
std::optional<T> value_in(const xgrad::io::Json& config, const std::string& flag,
                          const Range& range) {
  std::optional<T> value;
  const xgrad::io::Json* const found = config.find(key_of(flag));
  if (found == nullptr)
    return value;
  if constexpr (std::is_same_v<T, double>)
    value = found->number();
  else if (const auto* const same =
               found->as<std::conditional_t<std::is_same_v<T, bool>, bool, std::uint64_t>>())
    value = *same;
  const bool fits =
      std::is_same_v<T, bool> || (value && range.contains(static_cast<double>(*value)));
  return fits ? value : std::nullopt;
}

/// All that decides what comes of a run, and the size of the vocabulary if that is known.
xgrad::io::JsonObject to_json(const TrainOptions& options, std::size_t vocab_size);
/// A recipe as to_json() writes it.  FileError, which names `path`, if a field is missing or not
/// within its range.
Recipe read_recipe(const xgrad::io::Json& config, const std::string& path);

/// What is wrong with fields together, if something is: "--n-embd 130 is not divisible by ...".
std::optional<std::string> contradiction(const Recipe& recipe);

}  // namespace char_transformer
