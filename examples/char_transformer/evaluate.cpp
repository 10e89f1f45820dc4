#include "evaluate.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/batches.hpp>

#include "command.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "trained_model.hpp"
#include "training.hpp"

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
  const auto loss = [&](const auto& inputs, const auto& targets) {
    return model.loss(inputs, targets);
  };
  return ranks.mean_loss(static_cast<std::size_t>(x.size(0)),
                         xgrad::parallel::detail::of_rows(loss, x, y));
}

}  // namespace

std::optional<double> block_loss(const Ranks& ranks, const GPT& model, const xgrad::text::Ids& part,
                                 std::size_t blocks, const Stop& stop) {
  const GPT evaluated = without_dropout(model);
  double total = 0;
  for (std::size_t done = 0; done < blocks;) {
    if (stop(static_cast<double>(done) / static_cast<double>(blocks)))
      return std::nullopt;
    const auto [x, y] = xgrad::text::block_batch(part, model.config.block_size, done,
                                                 std::min(blocks_at_once, blocks - done));
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

namespace {

/// The loss over all blocks, with a line on standard error that shows how far it is: on a terminal
/// one that changes, otherwise one every ten seconds.
double shown_loss(const Ranks& ranks, const GPT& model, const xgrad::text::Ids& part,
                  std::size_t blocks) {
  using Clock = std::chrono::steady_clock;
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const auto begin = Clock::now();
  auto shown = begin;
  const auto show = [&](double done) {
    const auto now = Clock::now();
    if (done > 0 && now - shown > std::chrono::milliseconds(terminal ? 200 : 10'000)) {
      shown = now;
      const std::chrono::duration<double> spent = now - begin;
      std::fprintf(stderr, terminal ? "\r%.0f %%, %s left\x1b[K" : "%.0f %%, %s left\n", 100 * done,
                   format_duration(spent.count() * (1 - done) / done).c_str());
    }
    return false;
  };
  const double loss = block_loss(ranks, model, part, blocks, show).value();
  if (terminal && shown != begin)
    std::fprintf(stderr, "\r\x1b[K");
  return loss;
}

/// What --split names.
struct Scored {
  std::string label, name;  ///< "val_loss", "the validation split of FILE"
  xgrad::text::Ids ids;
};

Scored scored(const Source& source, const std::string& split) {
  if (split == "train")
    return {"train_loss",
            source.ids.train.size() < source.all.size() ? "the training split of " + source.name
                                                        : source.name,
            source.ids.train};
  if (split == "val")
    return {"val_loss", source.validation_name, source.ids.validation};
  return {"loss", source.name, source.all};
}

}  // namespace

std::size_t final_blocks(const TrainOptions& options, const xgrad::text::Ids& validation) {
  const std::size_t all = xgrad::text::block_count(validation, options.recipe.block_size);
  const std::size_t most = options.val_blocks.value_or(usual_val_blocks);
  return most == 0 ? all : std::min(all, most);
}

std::string format_blocks(std::size_t blocks, std::size_t all) {
  return blocks < all
             ? fmt::format("the first {} of {} blocks", format_count(blocks), format_count(all))
         : all == 1 ? "one block"
                    : fmt::format("all {} blocks", format_count(all));
}

void print_loss(const std::string& label, double loss, const std::string& over,
                const std::optional<double>& entropy) {
  say(fmt::format("{} {:.9g} (perplexity {:.6g})\nOver {}.\n", label, loss, std::exp(loss), over));
  if (entropy)
    say(fmt::format(
        "The text itself has an entropy of {:.6f} per character, which no model can beat: distance "
        "from perfect {:.6f}.\n",
        *entropy, loss - *entropy));
}

void evaluate(const EvalOptions& options) {
  const TrainedModel trained = load_trained_model(options.checkpoint);
  const Notes& notes = trained.notes;
  const std::size_t block_size = trained.model.config.block_size;
  const bool named = !options.data.empty();
  const Source source = named ? open_source(options.data, "", "", notes.characters)
                              : open_text("", "", trained.path, notes);
  if (const std::string flag = other_text(source, notes); flag == "--data")
    warn(fmt::format("{}: another text than the model was trained on", source.name));
  else if (!flag.empty() && !named)
    warn(fmt::format("{}: another text than the model was validated on", source.validation_name));
  const Scored part = scored(source, options.split.empty() && !named ? "val" : options.split);
  if (part.ids.size() <= block_size)
    throw xgrad::FileError(fmt::format("{}: {} {} too few: a block of {} needs one more than that",
                                       part.name,
                                       xgrad::counted(part.ids.size(), "character", "characters"),
                                       part.ids.size() == 1 ? "is" : "are", block_size));
  const std::size_t blocks = xgrad::text::block_count(part.ids, block_size);
  // As training has cut its batches, so the loss is the same to the bit.
  const auto* const shards = notes.config.find<std::uint64_t>("shards");
  const Ranks one(shards != nullptr && *shards > 0 ? *shards : xgrad::parallel::default_shards);
  const auto measure = [&] { return shown_loss(one, trained.model, part.ids, blocks); };
  const double loss = measure();
  if (!std::isfinite(loss))
    throw NotFinite(fmt::format("{}: the loss is {}\n{}", trained.path, loss,
                                first_anomaly([&] { measure(); })));
  print_loss(part.label, loss, fmt::format("{} of {}", format_blocks(blocks, blocks), part.name),
             part.label == "val_loss" ? source.entropy(blocks * block_size) : std::nullopt);
}

Command add_eval(CLI::App& program) {
  CLI::App& app = *program.add_subcommand("eval", "print a model's loss over a text");
  const auto options = std::make_shared<EvalOptions>();
  add_checkpoint(app, options->checkpoint);
  add_data(app, "--data", options->data,
           "any UTF-8 text; -: standard input [what the model was trained on]");
  app.add_option("--split", options->split, "the part of it [all of --data, or without it val]")
      ->type_name("NAME")
      ->check(CLI::IsMember({"train", "val", "all"}).description(""));
  add_threads(app, options->threads);
  return {&app, [options] {
            need("--checkpoint", options->checkpoint);
            evaluate(*options);
            return 0;
          }};
}

}  // namespace char_transformer
