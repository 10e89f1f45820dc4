#include "needs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <xgrad/autograd/available_memory.hpp>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/parallel/shards.hpp>

#include "evaluate.hpp"

namespace char_transformer {
namespace {

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

std::string describe(const Needs& needs, const TrainOptions& options) {
  const Recipe& r = options.recipe;
  const std::string text =
      needs.text > 0 ? fmt::format("{} about {}, ", options.data, format_bytes(needs.text)) : "";
  return fmt::format(
      "{}the weights, their gradients and what AdamW keeps about {} (--n-layer {}, --n-embd {}), a "
      "batch about {} (--batch-size {}, --block-size {})",
      text, format_bytes(needs.weights), r.n_layer, r.n_embd, format_bytes(needs.batch),
      r.batch_size, r.block_size);
}

}  // namespace

std::string format_bytes(double bytes) {
  return bytes < 1e6   ? fmt::format("{:.0f} kB", bytes / 1e3)
         : bytes < 1e9 ? fmt::format("{:.0f} MB", bytes / 1e6)
                       : fmt::format("{:.1f} GB", bytes / 1e9);
}

Needs needs_of(const Recipe& recipe, double text, std::size_t vocab_size, std::size_t threads) {
  const auto size = [](std::size_t n) { return static_cast<double>(n); };
  const double B = size(recipe.batch_size), T = size(recipe.block_size), C = size(recipe.n_embd),
               L = size(recipe.n_layer), H = size(recipe.n_head), V = size(vocab_size);
  const bool dropout = recipe.dropout > 0;
  const auto at_once = [&](std::size_t shards) {
    return size(threads < 2 * shards ? std::min(threads, shards) : 1);
  };
  // A batch is cut into shards, unless there is dropout.  Each has its own gradients.
  const std::size_t shards = dropout ? 1 : xgrad::parallel::shard_count(recipe.batch_size);
  const double gradients = size(shards) + (recipe.gradient_accumulation_steps > 1 ? 1 : 0);
  // In a block: the results of two norms, queries, keys and values, attention, two sums, and four
  // times the width before and after GELU; what dropout drew, in bytes in attention.
  const double block = 16 * C + (dropout ? 2 * C + H * T / 4 : 0);
  const double ends = 10 * C + 3 * V;  // embeddings, logits, and what is on its way
  const double train_rows = at_once(shards) * std::ceil(B / size(shards));
  // Without a graph, little is kept.
  const std::size_t eval_shards = xgrad::parallel::shard_count(blocks_at_once);
  const double eval_rows = at_once(eval_shards) * size(blocks_at_once / eval_shards);
  const double weights = sizeof(float) * C * (12 * L * C + T + V) * (3 + gradients);
  const double batch =
      sizeof(float) * T * std::max(train_rows * (L * block + ends), eval_rows * ends);
  constexpr double kept = 1.0 / 8;  // of what was in use, for reuse
  return {.text = text, .weights = weights, .batch = batch + kept * (weights + batch)};
}

std::string describe_needs(const TrainOptions& options) {
  return describe(
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
        format_bytes(needs.total()), format_bytes(available), describe(needs, options)));
}

}  // namespace char_transformer
