#include "describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <xgrad/autograd/available_memory.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/threads.hpp>

#include "build.hpp"
#include "evaluate.hpp"
#include "output.hpp"

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

/// The size of the texts in bytes; 0 of a pipe, and of what cannot be looked at.
double text_size(const TrainOptions& options) {
  double bytes = 0;
  for (const std::string& path : {options.data, options.val_data}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    bytes += error ? 0 : static_cast<double>(size);
  }
  return bytes;
}

/// Bytes, estimated: within a third of what a run takes where that is much.
struct Needs {
  double text = 0;     ///< an id for each character
  double weights = 0;  ///< with their gradients and what AdamW keeps
  double batch = 0;    ///< what the ops keep of a batch, or of an evaluation
  double total() const { return text + weights + batch; }
};

/// Of training on a text of so many bytes, with so many different characters.
Needs needs_of(const Recipe& recipe, double text, std::size_t vocab_size) {
  const double B = number(recipe.batch_size), T = number(recipe.block_size),
               C = number(recipe.n_embd), L = number(recipe.n_layer), H = number(recipe.n_head),
               V = number(vocab_size);
  const bool dropout = recipe.dropout > 0;
  const std::size_t threads = xgrad::num_threads();
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

/// Before the text is read.
Needs needs_of(const TrainOptions& options) {
  constexpr std::size_t few_characters = 64;
  return needs_of(options.recipe, text_size(options), few_characters);
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

std::string parameter_table(const xgrad::nn::GPT& model) {
  using xgrad::nn::num_parameters;
  std::string table;
  const auto row = [&](const std::string& name, const std::string& shape, std::size_t n) {
    table += fmt::format("\n{:<{}}  {:<12}  {:>10}", name, is_verbose() ? 36 : 5, shape,
                         format_count(n));
  };
  if (is_verbose()) {
    for (const auto& [name, x] : xgrad::nn::named_parameters(model))
      row(name, xgrad::to_string(x.shape()), static_cast<std::size_t>(x.numel()));
  } else {
    const auto& c = model.config;
    row("wte", fmt::format("({}, {})", c.vocab_size, c.n_embd), num_parameters(model.wte));
    row("wpe", fmt::format("({}, {})", c.block_size, c.n_embd), num_parameters(model.wpe));
    row("h", xgrad::counted(c.n_layer, "block", "blocks"),
        c.n_layer * num_parameters(model.h.front()));
    row("ln_f", fmt::format("({})", c.n_embd), num_parameters(model.ln_f));
  }
  row("total", "", num_parameters(model));
  return table;
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
  const auto& [train, validation] = source.ids;
  const xgrad::nn::GPT& model = training.model();
  const std::size_t characters = source.characters.size();
  tell("Build", fmt::format("{}; {}, float32; matrix products by {}.", describe_build(),
                            xgrad::simd_name(), xgrad::blas_name()));
  tell("Text",
       fmt::format("{}: {} characters, {} different; {} to train on, {} to validate{}.",
                   source.name, format_count(source.all.size()), characters,
                   format_count(train.size()), format_count(validation.size()),
                   train.size() == source.all.size() ? ", from " + source.validation_name : ""));
  const auto entropy =
      source.entropy(xgrad::text::block_count(validation, recipe.block_size) * recipe.block_size);
  tell("Loss", fmt::format("a uniform guess has ln {} = {:.4f}{}.", characters,
                           std::log(number(characters)),
                           entropy ? fmt::format("; no model can beat {:.4f}, the entropy of the "
                                                 "text itself",
                                                 *entropy)
                                   : ""));
  tell("Model",
       fmt::format("n_layer {}, n_head {}, n_embd {}: {} parameters.{}", recipe.n_layer,
                   recipe.n_head, recipe.n_embd, format_count(xgrad::nn::num_parameters(model)),
                   parameter_table(model)));
  const double flops = flops_per_token(model);
  const Needs needs =
      needs_of(recipe, number((train.size() + validation.size()) * train.itemsize()), characters);
  tell("Cost",
       fmt::format(
           "{} for a character, {} for a step; about {} of memory (text {}, weights and "
           "optimizer {}, batch {}), of {} that are free.",
           format_si(flops, "FLOP"), format_si(flops * number(training.tokens_per_step()), "FLOP"),
           format_si(needs.total(), "B"), format_si(needs.text, "B"), format_si(needs.weights, "B"),
           format_si(needs.batch, "B"), format_si(number(xgrad::available_memory()), "B")));
}

void describe(const Start& start, Training& training, const std::function<bool()>& stop,
              const Tell& tell) {
  describe_model(start, training, tell);
  const Recipe& recipe = start.options.recipe;
  const std::size_t batches = recipe.gradient_accumulation_steps, ranks = training.ranks().size();
  tell("Steps",
       fmt::format("{} of {} ({}{} of {}), on {}{} ({}), seed {}.", format_count(recipe.max_iters),
                   format_count(training.tokens_per_step(), "character", "characters"),
                   batches > 1 ? fmt::format("{} batches of ", batches) : "",
                   xgrad::counted(recipe.batch_size, "block", "blocks"), recipe.block_size,
                   ranks > 1 ? fmt::format("{} ranks of ", ranks) : "",
                   xgrad::counted(xgrad::num_threads(), "thread", "threads"), xgrad::simd_name(),
                   start.options.seed));
  if (recipe.max_iters > 0 && recipe.max_iters <= recipe.warmup_iters)
    tell("Note",
         fmt::format("the learning rate rises to the end: --warmup-iters {}, --max-iters {}.",
                     recipe.warmup_iters, recipe.max_iters));

  std::optional<double> ms = training.measure(start.options.seed, stop);  // of a token on one rank
  if (!ms)
    return;
  if (ranks > 1 && recipe.dropout == 0) {  // with dropout, each computes all
    const std::size_t shards = std::min(recipe.shards, recipe.batch_size);
    *ms *= number((shards + ranks - 1) / ranks) / number(shards);  // of the slowest
  }
  const std::uint64_t made = start.steps(), end = recipe.max_iters, interval = recipe.eval_interval;
  // One before the first step and one after the last, too.
  const std::size_t evaluations =
      made < end ? (end - 1) / interval - made / interval + (made == 0 ? 2 : 1) : 0;
  const double step = number(training.tokens_per_step());
  // A forward pass alone is about a third of a step.
  const double evaluated =
      number(evaluations * recipe.eval_iters) * number(recipe.batch_size * recipe.block_size) / 3;
  const double tokens =
      (number(end - made) + steps_of_validation(start, training)) * step + evaluated;
  tell("Time", fmt::format("about {}: {:.3g} ms a step, {}, {}/s.",
                           format_duration(std::max(1.0, *ms * tokens / 1000)), *ms * step,
                           format_si(1000 / *ms, " characters/s"),
                           format_si(1000 / *ms * flops_per_token(training.model()), "FLOP")));
}

std::string describe_needs(const TrainOptions& options) {
  const Needs needs = needs_of(options);
  const Recipe& r = options.recipe;
  return fmt::format(
      "{}the weights, their gradients and what AdamW keeps about {} (--n-layer {}, --n-embd {}), a "
      "batch about {} (--batch-size {}, --block-size {})",
      needs.text > 0 ? fmt::format("{} about {}, ", options.data, format_si(needs.text, "B")) : "",
      format_si(needs.weights, "B"), r.n_layer, r.n_embd, format_si(needs.batch, "B"), r.batch_size,
      r.block_size);
}

void check_memory(const TrainOptions& options) {
  const double needed = needs_of(options).total(), available = number(xgrad::available_memory());
  if (options.check_memory && needed > available)
    throw xgrad::Error(fmt::format(
        "not enough memory: about {} are needed, but {} are available: {}; --check-memory false "
        "tries it all the same",
        format_si(needed, "B"), format_si(available, "B"), describe_needs(options)));
}

}  // namespace char_transformer
