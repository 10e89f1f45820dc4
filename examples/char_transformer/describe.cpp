#include "describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>
#include <xgrad/autograd/available_memory.hpp>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/parallel/shards.hpp>

#include "build.hpp"
#include "evaluate.hpp"
#include "output.hpp"
#include "progress.hpp"

namespace char_transformer {
namespace {

#if defined(__clang__)
constexpr const char* compiler = "Clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* compiler = "GCC " __VERSION__;
#else
constexpr const char* compiler = "an unknown compiler";
#endif

double number(std::size_t n) { return static_cast<double>(n); }

/// Where a text's are not known yet.
constexpr std::size_t few_characters = 64;

/// The size of a file in bytes; 0 of a pipe, and of what cannot be looked at.
double file_size(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<double>(size);
}

double text_size(const TrainOptions& options) {
  return file_size(options.data) + file_size(options.val_data);
}

/// Bytes, estimated: within a third of what a run takes where that is much.
struct Needs {
  double text = 0;     ///< an id for each character
  double weights = 0;  ///< with their gradients and what AdamW keeps
  double batch = 0;    ///< what the ops keep of a batch, or of an evaluation
  double total() const { return text + weights + batch; }
};

/// Of training on a text of so many bytes, with so many different characters and threads.
Needs needs_of(const Recipe& recipe, double text, std::size_t vocab_size, std::size_t threads) {
  const double B = number(recipe.batch_size), T = number(recipe.block_size),
               C = number(recipe.n_embd), L = number(recipe.n_layer), H = number(recipe.n_head),
               V = number(vocab_size);
  const bool dropout = recipe.dropout > 0;
  const auto at_once = [&](std::size_t shards) {
    return number(threads < 2 * shards ? std::min(threads, shards) : 1);
  };
  // A batch is cut into shards, unless there is dropout.  Each has its own gradients.
  const std::size_t shards = dropout ? 1 : xgrad::parallel::shard_count(recipe.batch_size);
  const double gradients = number(shards) + (recipe.gradient_accumulation_steps > 1 ? 1 : 0);
  // In a block: the results of two norms, queries, keys and values, attention, two sums, and four
  // times the width before and after GELU; what dropout drew, in bytes in attention.
  const double block = 16 * C + (dropout ? 2 * C + H * T / 4 : 0);
  const double ends = 10 * C + 3 * V;  // embeddings, logits, and what is on its way
  const double train_rows = at_once(shards) * std::ceil(B / number(shards));
  // Without a graph, little is kept.
  const std::size_t eval_shards = xgrad::parallel::shard_count(blocks_at_once);
  const double eval_rows = at_once(eval_shards) * number(blocks_at_once / eval_shards);
  const double weights = sizeof(float) * C * (12 * L * C + T + V) * (3 + gradients);
  const double batch =
      sizeof(float) * T * std::max(train_rows * (L * block + ends), eval_rows * ends);
  constexpr double kept = 1.0 / 8;  // of what was in use, for reuse
  return {.text = text, .weights = weights, .batch = batch + kept * (weights + batch)};
}

std::string list_needs(const Needs& needs, const TrainOptions& options) {
  const Recipe& r = options.recipe;
  const std::string text =
      needs.text > 0 ? fmt::format("{} about {}, ", options.data, format_bytes(needs.text)) : "";
  return fmt::format(
      "{}the weights, their gradients and what AdamW keeps about {} (--n-layer {}, --n-embd {}), a "
      "batch about {} (--batch-size {}, --block-size {})",
      text, format_bytes(needs.weights), r.n_layer, r.n_embd, format_bytes(needs.batch),
      r.batch_size, r.block_size);
}

/// Floating-point operations of forward and backward for one token of T = block_size:
/// 6 N + 12 L C T, where N counts the parameters without wpe, whose rows are only looked up, L
/// blocks of width C.  Additions and multiplications count each, and attention counts as if it had
/// no mask.  Chowdhery et al., PaLM, 2022, appendix B.
double flops_per_token(const xgrad::nn::GPT& model) {
  const auto& c = model.config;
  const std::size_t n = xgrad::nn::num_parameters(model) - xgrad::nn::num_parameters(model.wpe);
  return 6 * number(n) + 12 * number(c.n_layer) * number(c.n_embd) * number(c.block_size);
}

/// "2 threads", "4 ranks of 1 thread".
std::string workers(const Ranks& ranks) {
  const std::size_t n = xgrad::num_threads();
  const std::string threads = fmt::format("{} thread{}", n, n == 1 ? "" : "s");
  return ranks.size() == 1 ? threads : fmt::format("{} ranks of {}", ranks.size(), threads);
}

/// "47.1 ms", "93.2 s".
std::string format_ms(double ms) {
  return ms < 1000 ? fmt::format("{:.3g} ms", ms) : fmt::format("{:.3g} s", ms / 1000);
}

/// "3.8 GFLOP".
std::string format_flops(double flops) {
  for (const auto& [unit, prefix] : {std::pair(1e12, "T"), {1e9, "G"}, {1e6, "M"}})
    if (flops >= unit)
      return fmt::format("{:.3g} {}FLOP", flops / unit, prefix);
  return fmt::format("{:.3g} kFLOP", flops / 1e3);
}

std::string parameter_table(const xgrad::nn::GPT& model) {
  using xgrad::nn::num_parameters;
  struct Part {
    std::string name, shape, count, remark = "";
  };
  std::vector<Part> parts;
  const auto& c = model.config;
  if (is_verbose()) {
    for (const auto& [name, x] : xgrad::nn::named_parameters(model))
      parts.push_back(
          {name, xgrad::to_string(x.shape()), format_count(static_cast<std::size_t>(x.numel()))});
  } else {
    const std::size_t block = num_parameters(model.h.front());
    parts = {{"wte", fmt::format("({}, {})", c.vocab_size, c.n_embd),
              format_count(num_parameters(model.wte)), "  characters; lm_head has the same"},
             {"wpe", fmt::format("({}, {})", c.block_size, c.n_embd),
              format_count(num_parameters(model.wpe)), "  positions"},
             {"h", xgrad::counted(c.n_layer, "block", "blocks"), format_count(c.n_layer * block),
              c.n_layer == 1 ? "" : fmt::format("  {} each", format_count(block))},
             {"ln_f", fmt::format("({})", c.n_embd), format_count(num_parameters(model.ln_f))}};
  }
  parts.push_back({"total", "", format_count(num_parameters(model))});
  std::size_t name = 0, shape = 0, count = 0;
  for (const Part& part : parts) {
    name = std::max(name, part.name.size());
    shape = std::max(shape, part.shape.size());
    count = std::max(count, part.count.size());
  }
  std::string table;
  for (const Part& part : parts)
    table += fmt::format("\n{:<{}}  {:<{}}  {:>{}}{}", part.name, name, part.shape, shape,
                         part.count, count, part.remark);
  return table;
}

/// Of all that a step computes, what the slowest rank does: so many of the shards, or all if it
/// draws random numbers.
double share_of_rank(const Recipe& recipe, const Ranks& ranks) {
  if (ranks.size() == 1 || recipe.dropout > 0)
    return 1;
  const std::size_t shards = std::min(recipe.shards, recipe.batch_size), n = ranks.size();
  return number((shards + n - 1) / n) / number(shards);
}

void describe_losses(const Start& start, const Tell& tell) {
  const std::size_t n = start.source.characters.size();
  std::string text = fmt::format("a uniform guess has ln {} = {:.4f}", n, std::log(number(n)));
  const std::size_t block_size = start.options.recipe.block_size;
  const std::size_t blocks = xgrad::text::block_count(start.source.ids.validation, block_size);
  if (const auto entropy = start.source.entropy(blocks * block_size))
    text += fmt::format("; no model can beat {:.4f}, the entropy of the text itself", *entropy);
  tell("Loss", text + ".");
}

void describe_cost(const Start& start, Training& training, const Tell& tell) {
  const Recipe& recipe = start.options.recipe;
  const xgrad::text::Split& ids = start.source.ids;
  const double flops = flops_per_token(training.model());
  const Needs needs =
      needs_of(recipe, number((ids.train.size() + ids.validation.size()) * ids.train.itemsize()),
               start.source.characters.size(), xgrad::num_threads());
  const auto available = number(xgrad::available_memory());
  tell(
      "Cost",
      fmt::format("{} for a character, {} for a step; about {} of memory (text {}, weights "
                  "and optimizer {}, batch {}), of {} that are free.",
                  format_flops(flops), format_flops(flops * number(training.tokens_per_step())),
                  format_bytes(needs.total()), format_bytes(needs.text),
                  format_bytes(needs.weights), format_bytes(needs.batch), format_bytes(available)));
}

/// The steps that the run makes.
void describe_steps(const Start& start, const Training& training, const Tell& tell) {
  const Recipe& recipe = start.options.recipe;
  const std::size_t n = recipe.gradient_accumulation_steps;
  tell("Steps",
       fmt::format("{} of {} ({}{} of {}), on {} ({}), seed {}.", format_count(recipe.max_iters),
                   format_count(training.tokens_per_step(), "character", "characters"),
                   n > 1 ? fmt::format("{} batches of ", n) : "",
                   xgrad::counted(recipe.batch_size, "block", "blocks"), recipe.block_size,
                   workers(training.ranks()), xgrad::simd_name(), start.options.seed));
  if (recipe.max_iters > 0 && recipe.max_iters <= recipe.warmup_iters)
    tell("Note",
         fmt::format("the learning rate rises to the end: --warmup-iters {}, --max-iters {}.",
                     recipe.warmup_iters, recipe.max_iters));
}

/// The time that remains, from the time that one token takes one rank.
void describe_time(const Start& start, Training& training, double ms_per_token, const Tell& tell) {
  const Recipe& recipe = start.options.recipe;
  const std::uint64_t made = start.resumed.value_or(0);
  const std::uint64_t end = recipe.max_iters, interval = recipe.eval_interval;
  // One before the first step and one after the last, too.
  const std::size_t evaluations =
      made < end ? (end - 1) / interval - made / interval + (made == 0 ? 2 : 1) : 0;
  const double step = number(training.tokens_per_step());
  // A forward pass alone is about a third of a step.
  const double evaluated = number(evaluations) * number(recipe.eval_iters) *
                           number(recipe.batch_size * recipe.block_size) / 3;
  const double tokens =
      (number(end - made) + steps_of_validation(start, training)) * step + evaluated;
  const double ms = ms_per_token * share_of_rank(recipe, training.ranks());
  tell("Time", fmt::format("about {}: {} a step, {} characters/s, {}/s.",
                           format_duration(std::max(1.0, ms * tokens / 1000)), format_ms(ms * step),
                           format_rate(1000 / ms),
                           format_flops(1000 / ms * flops_per_token(training.model()))));
}

}  // namespace

std::string describe_build() {
  const std::string commit(build_commit);
  return fmt::format("xgrad {}{}, {}", build_version,
                     commit.empty() ? "" : fmt::format(" (commit {})", commit), compiler);
}

double steps_of_validation(const Start& start, const Training& training) {
  const std::size_t blocks = final_blocks(start.options, start.source.ids.validation);
  // A forward pass alone is about a third of a step.
  return number(blocks * start.options.recipe.block_size) / 3 / number(training.tokens_per_step());
}

void describe_model(const Start& start, Training& training, const Tell& tell) {
  const Recipe& recipe = start.options.recipe;
  const Source& source = start.source;
  tell("Build", fmt::format("{}; {}, float32; matrix products by {}.", describe_build(),
                            xgrad::simd_name(), xgrad::blas_name()));
  const bool apart = source.ids.train.size() == source.all.size();
  tell("Text", fmt::format("{}: {} characters, {} different; {} to train on, {} to validate{}.",
                           source.name, format_count(source.all.size()), source.characters.size(),
                           format_count(source.ids.train.size()),
                           format_count(source.ids.validation.size()),
                           apart ? ", from " + source.validation_name : ""));
  describe_losses(start, tell);
  tell("Model", fmt::format("n_layer {}, n_head {}, n_embd {}: {} parameters.{}", recipe.n_layer,
                            recipe.n_head, recipe.n_embd,
                            format_count(xgrad::nn::num_parameters(training.model())),
                            parameter_table(training.model())));
  describe_cost(start, training, tell);
}

void describe(const Start& start, Training& training, const StopSignals& signals,
              const Tell& tell) {
  describe_model(start, training, tell);
  describe_steps(start, training, tell);
  if (const auto ms = training.measure(start.options.seed, [&] { return signals.received() != 0; }))
    describe_time(start, training, *ms, tell);
}

std::string format_bytes(double bytes) {
  return bytes < 1e6   ? fmt::format("{:.0f} kB", bytes / 1e3)
         : bytes < 1e9 ? fmt::format("{:.0f} MB", bytes / 1e6)
                       : fmt::format("{:.1f} GB", bytes / 1e9);
}

std::string describe_needs(const TrainOptions& options) {
  return list_needs(
      needs_of(options.recipe, text_size(options), few_characters, xgrad::num_threads()), options);
}

void check_memory(const TrainOptions& options, std::size_t vocab_size) {
  if (!options.check_memory)
    return;
  const double text = vocab_size == 0 ? text_size(options) : 0;
  const Needs needs = needs_of(options.recipe, text, vocab_size == 0 ? few_characters : vocab_size,
                               xgrad::num_threads());
  const auto available = static_cast<double>(xgrad::available_memory());
  if (needs.total() > available)
    throw xgrad::Error(fmt::format(
        "not enough memory: about {} are needed, but {} are available: {}; --check-memory false "
        "tries it all the same",
        format_bytes(needs.total()), format_bytes(available), list_needs(needs, options)));
}

}  // namespace char_transformer
