#include "options.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>
#include <vector>

#include "command_line/command_line.hpp"

namespace char_transformer {
namespace {

using command_line::CommandLine;
using command_line::Flags;
using command_line::Range;

constexpr std::size_t many = 1'000'000'000;

/// The flags of a recipe.  Those that are not given take the preset's value once it is known.
class RecipeFlags {
 public:
  RecipeFlags(Flags& flags, Recipe& recipe) : flags_(flags), recipe_(recipe) {}

  template <class T>
  void number(const std::string& flag, T Recipe::*field, Range<T> range, const std::string& help) {
    flags_.number(flag, recipe_.*field, range, described(help, field));
    keep(flag, field);
  }
  void boolean(const std::string& flag, bool Recipe::*field, const std::string& help) {
    flags_.boolean(flag, recipe_.*field, described(help, field));
    keep(flag, field);
  }
  void apply(const Recipe& preset) const {
    for (const auto& fill : fill_)
      fill(preset);
  }

 private:
  template <class T>
  static std::string described(const std::string& help, T Recipe::*field) {
    if (nano.*field == baby.*field)
      return fmt::format("{} [{}]", help, nano.*field);
    return fmt::format("{} [{}, baby: {}]", help, nano.*field, baby.*field);
  }
  template <class T>
  void keep(const std::string& flag, T Recipe::*field) {
    fill_.push_back([this, flag, field](const Recipe& preset) {
      if (!flags_.given(flag))
        recipe_.*field = preset.*field;
    });
  }

  Flags& flags_;
  Recipe& recipe_;
  std::vector<std::function<void(const Recipe&)>> fill_;
};

void add_model(Flags& flags, RecipeFlags& recipe) {
  flags.group("Model");
  recipe.number("--block-size", &Recipe::block_size, {1, 65536},
                "characters that it looks back on");
  recipe.number("--n-layer", &Recipe::n_layer, {1, 1024}, "blocks");
  recipe.number("--n-head", &Recipe::n_head, {1, 1024}, "attention heads of a block");
  recipe.number("--n-embd", &Recipe::n_embd, {1, 65536}, "width; a multiple of --n-head");
  recipe.number("--dropout", &Recipe::dropout, {0, 1, false, true}, "probability of dropping");
  recipe.boolean("--bias", &Recipe::bias, "biases in linear layers and norms");
}

void add_training(Flags& flags, RecipeFlags& recipe, double& min_lr) {
  flags.group("Training");
  recipe.number("--batch-size", &Recipe::batch_size, {1, 65536}, "blocks in a batch");
  recipe.number("--max-iters", &Recipe::max_iters, {0, many}, "steps");
  recipe.number("--learning-rate", &Recipe::learning_rate, {0, 10}, "the highest learning rate");
  flags.number("--min-lr", min_lr, {0, 10},
               "where the learning rate ends [a tenth of --learning-rate]");
  recipe.number("--warmup-iters", &Recipe::warmup_iters, {0, many}, "steps on which it rises");
  recipe.number("--lr-decay-iters", &Recipe::lr_decay_iters, {0, many},
                "step at which it reaches --min-lr");
  recipe.number("--gradient-accumulation-steps", &Recipe::gradient_accumulation_steps, {1, 65536},
                "batches in a step");
  recipe.number("--weight-decay", &Recipe::weight_decay, {0, 10}, "of matrices");
  recipe.number("--beta1", &Recipe::beta1, {0, 1, false, true}, "AdamW's, for the gradient");
  recipe.number("--beta2", &Recipe::beta2, {0, 1, false, true}, "AdamW's, for its square");
  recipe.number("--grad-clip", &Recipe::grad_clip, {0, 1e9},
                "largest norm of the gradient; 0: any");
  flags.group("Evaluation");
  recipe.number("--eval-interval", &Recipe::eval_interval, {1, many}, "steps between evaluations");
  recipe.number("--eval-iters", &Recipe::eval_iters, {1, many}, "batches of an evaluation");
}

void add_threads(Flags& flags, std::size_t& threads) {
  flags.number("--threads", threads, {1, 1024},
               "threads; the numbers do not depend on them [all cores]");
}

void add_seed(Flags& flags, std::uint64_t& seed) {
  static_assert(sizeof(std::size_t) == sizeof(std::uint64_t));
  flags.number("--seed", seed, {0, 0xFFFFFFFF}, fmt::format("of the random numbers [{}]", seed));
}

}  // namespace

Command parse_command(int argc, const char* const* argv) {
  CommandLine line(
      "char_transformer", "Trains a character-level transformer, and lets it write.",
      "\nFor example:\n"
      "  char_transformer train --data shakespeare.txt --preset nano\n"
      "  char_transformer eval --checkpoint runs/000/checkpoint.safetensors\n"
      "  char_transformer sample --checkpoint runs/000/checkpoint.safetensors --prompt \"To "
      "be\"\n\n"
      "'char_transformer train --help' and so on list the flags.");

  TrainOptions train;
  Flags train_flags = line.command("train", "train a model; it goes to a folder");
  train_flags.group("What and where");
  train_flags.path("--data", train.data, "FILE",
                   "any UTF-8 text [scenes that the program invents itself]");
  train_flags.path("--out", train.out, "DIR", "folder for the run [runs/000, runs/001, ...]");
  train_flags.choice("--preset", train.preset, {"nano", "baby"},
                     "a recipe, which other flags change [nano]");
  add_seed(train_flags, train.seed);
  add_threads(train_flags, train.threads);
  train_flags.boolean("--profile", train.profile,
                      "print where ten steps spend their time; and DIR/trace.json");
  train_flags.boolean("--check-memory", train.check_memory,
                      "refuse to start what seems to need more memory than there is [true]");
  RecipeFlags recipe(train_flags, train.recipe);
  add_model(train_flags, recipe);
  add_training(train_flags, recipe, train.recipe.min_lr);

  EvalOptions eval;
  Flags eval_flags = line.command("eval", "print a model's loss over a whole validation split");
  eval_flags.path("--checkpoint", eval.checkpoint, "FILE", "a checkpoint.safetensors (needed)");
  eval_flags.path("--data", eval.data, "FILE", "any UTF-8 text [what the model was trained on]");
  add_threads(eval_flags, eval.threads);

  SampleOptions sample;
  Flags sample_flags = line.command("sample", "let a model write");
  sample_flags.path("--checkpoint", sample.checkpoint, "FILE", "a checkpoint.safetensors (needed)");
  sample_flags.text("--prompt", sample.prompt, "TEXT", "what it continues [a newline]");
  sample_flags.number("--tokens", sample.tokens, {0, many},
                      fmt::format("characters that it adds [{}]", sample.tokens));
  sample_flags.number(
      "--temperature", sample.temperature, {0, 100},
      fmt::format("0: always the likeliest; higher: wilder [{}]", sample.temperature));
  sample_flags.number("--top-k", sample.top_k, {1, many},
                      "draw among the k likeliest characters [all]");
  add_seed(sample_flags, sample.seed);
  add_threads(sample_flags, sample.threads);

  ExportOptions exported;
  Flags export_flags =
      line.command("export", "write a model's weights to a file that PyTorch users open");
  export_flags.path("--checkpoint", exported.checkpoint, "FILE",
                    "a checkpoint.safetensors (needed)");
  export_flags.path("--out", exported.out, "FILE", fmt::format("where to [{}]", exported.out));

  ImportOptions imported;
  Flags import_flags =
      line.command("import", "make a checkpoint of a state dict that PyTorch users saved");
  import_flags.path("--state", imported.state, "FILE",
                    "a safetensors file with nanoGPT's names (needed)");
  import_flags.path("--out", imported.out, "FILE", fmt::format("where to [{}]", imported.out));
  import_flags.path("--data", imported.data, "FILE",
                    "the text that it was trained on, for its characters [the file's metadata]");
  import_flags.number("--n-head", imported.n_head, {1, 1024},
                      "attention heads of a block [the file's metadata]");

  line.command("corpus",
               "print the scenes that are trained on "
               "without --data");

  if (const auto help = line.parse(argc, argv))
    return Help{*help};

  if (train_flags.given()) {
    recipe.apply(train.preset == "baby" ? baby : nano);
    Recipe& r = train.recipe;
    if (!train_flags.given("--min-lr"))
      r.min_lr = r.learning_rate / 10;
    if (r.n_embd % r.n_head != 0)
      line.refuse(fmt::format("--n-embd {} is not divisible by --n-head {}", r.n_embd, r.n_head));
    if (r.min_lr > r.learning_rate)
      line.refuse(
          fmt::format("--min-lr {} is above --learning-rate {}: the learning rate would "
                      "rise where it should fall",
                      r.min_lr, r.learning_rate));
    if (r.warmup_iters > r.lr_decay_iters)
      line.refuse(
          fmt::format("--warmup-iters {} is beyond --lr-decay-iters {}: the learning rate "
                      "would reach --min-lr while it rises",
                      r.warmup_iters, r.lr_decay_iters));
    return train;
  }
  const auto need = [&line](const char* flag, const std::string& value) {
    if (value.empty())
      line.refuse(fmt::format("{} FILE is needed", flag));
  };
  if (eval_flags.given()) {
    need("--checkpoint", eval.checkpoint);
    return eval;
  }
  if (sample_flags.given()) {
    need("--checkpoint", sample.checkpoint);
    return sample;
  }
  if (export_flags.given()) {
    need("--checkpoint", exported.checkpoint);
    return exported;
  }
  if (import_flags.given()) {
    need("--state", imported.state);
    return imported;
  }
  return CorpusOptions();
}

}  // namespace char_transformer
