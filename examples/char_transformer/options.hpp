#pragma once
// What the command line can say.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace char_transformer {

/// A recipe: the model and how it is trained.  Names and meanings are nanoGPT's.
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
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double grad_clip = 1;

  std::size_t eval_interval = 250;
  std::size_t eval_iters = 20;
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

struct TrainOptions {
  std::string data;  ///< empty: the embedded corpus
  std::string out;   ///< empty: a new folder under runs/
  std::string preset = "nano";
  Recipe recipe;
  std::uint64_t seed = 1337;
  std::size_t threads = 0;
  bool profile = false;
  bool check_memory = true;  ///< refuse what does not fit
};

struct EvalOptions {
  std::string checkpoint;
  std::string data;  ///< empty: what the checkpoint was trained on
  std::size_t threads = 0;
};

struct SampleOptions {
  std::string checkpoint;
  std::string prompt;  ///< empty: a newline, or else the first character
  std::size_t tokens = 500;
  double temperature = 0.8;
  std::optional<std::size_t> top_k;
  std::uint64_t seed = 1337;
  std::size_t threads = 0;
};

struct ExportOptions {
  std::string checkpoint;
  std::string out = "model.safetensors";
};

struct ImportOptions {
  std::string state;
  std::string out = "checkpoint.safetensors";
  std::string data;                   ///< empty: the characters are the file's
  std::optional<std::size_t> n_head;  ///< none: what the file says
};

struct CorpusOptions {};

/// A request for help: the text to print.
struct Help {
  std::string text;
};

using Command = std::variant<Help, TrainOptions, EvalOptions, SampleOptions, ExportOptions,
                             ImportOptions, CorpusOptions>;

/// Reads the command line.  Throws command_line::UsageError.
Command parse_command(int argc, const char* const* argv);

}  // namespace char_transformer
