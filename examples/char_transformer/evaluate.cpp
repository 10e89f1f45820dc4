#include "evaluate.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/batches.hpp>

#include "output.hpp"
#include "progress.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

using xgrad::nn::GPT;

/// The same weights with dropout off; the model itself keeps its mode.
GPT without_dropout(const GPT& model) {
  GPT copy = model;
  xgrad::nn::eval(copy);
  return copy;
}

double mean_loss(const Ranks& ranks, const GPT& model, const xgrad::Indices& x,
                 const xgrad::Indices& y) {
  return ranks.mean_loss(
      [&](const auto& inputs, const auto& targets) { return model.loss(inputs, targets); }, x, y);
}

}  // namespace

std::optional<double> validation_loss(const Ranks& ranks, const GPT& model,
                                      const xgrad::text::Ids& part, const Stop& stop) {
  const GPT evaluated = without_dropout(model);
  const std::size_t block_size = model.config.block_size;
  const std::size_t blocks = xgrad::text::block_count(part, block_size);
  double total = 0;
  for (std::size_t done = 0; done < blocks;) {
    if (stop(static_cast<double>(done) / static_cast<double>(blocks)))
      return std::nullopt;
    const auto [x, y] = xgrad::text::block_batch(part, block_size, done, blocks_at_once);
    total += mean_loss(ranks, evaluated, x, y) * static_cast<double>(x.size(0));
    done += x.size(0);
  }
  return total / static_cast<double>(blocks);
}

std::optional<double> estimate_loss(const Ranks& ranks, const GPT& model,
                                    const xgrad::text::Ids& part, std::size_t batch_size,
                                    std::size_t batches, std::uint64_t seed, const Stop& stop) {
  const GPT evaluated = without_dropout(model);
  xgrad::Generator generator(seed);
  double total = 0;
  for (std::size_t i = 0; i < batches; ++i) {
    if (stop(static_cast<double>(i) / static_cast<double>(batches)))
      return std::nullopt;
    const auto [x, y] =
        xgrad::text::random_batch(part, model.config.block_size, batch_size, generator);
    total += mean_loss(ranks, evaluated, x, y);
  }
  return total / static_cast<double>(batches);
}

double shown_validation_loss(const Ranks& ranks, const GPT& model, const xgrad::text::Ids& part) {
  using Clock = std::chrono::steady_clock;
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const auto begin = Clock::now();
  auto shown = begin;
  const auto show = [&](double done) {
    const auto now = Clock::now();
    if (terminal && done > 0 && now - shown > std::chrono::milliseconds(200)) {
      shown = now;
      const std::chrono::duration<double> spent = now - begin;
      std::fprintf(stderr, "\r%.0f %%, %s left\x1b[K", 100 * done,
                   format_duration(spent.count() * (1 - done) / done).c_str());
    }
    return false;
  };
  const double loss = validation_loss(ranks, model, part, show).value();
  if (shown != begin)
    std::fprintf(stderr, "\r\x1b[K");
  return loss;
}

void print_validation_loss(double loss, const Source& source, std::size_t block_size) {
  say(fmt::format("val_loss {:.9g} (perplexity {:.6g})\n", loss, std::exp(loss)));
  if (const auto entropy = source.entropy(block_size))
    say(fmt::format(
        "The text itself has an entropy of {:.6f} per character, which no model can beat: distance "
        "from perfect {:.6f}.\n",
        *entropy, loss - *entropy));
}

void evaluate(const EvalOptions& options) {
  const TrainedModel trained = load_trained_model(options.checkpoint);
  const Notes& notes = trained.notes;
  const std::size_t block_size = trained.model.config.block_size;
  const Source source = open_text(options.data, options.checkpoint, notes, block_size);
  if (!notes.text.empty() && checksum(source.ids) != notes.text)
    warn(fmt::format("{}: another text than the model was trained on", source.name));
  // As training has cut its batches, so the loss is the same to the bit.
  const auto* const shards = notes.config.find<std::uint64_t>("shards");
  const Ranks one(
      {}, xgrad::parallel::alone(),
      {.shards = shards != nullptr && *shards > 0 ? *shards : xgrad::parallel::default_shards});
  print_validation_loss(shown_validation_loss(one, trained.model, source.ids.validation), source,
                        block_size);
}

}  // namespace char_transformer
