#include "evaluate.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
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
using xgrad::text::Ids;

/// The mean loss over so many items, with dropout off; `batch(i)` is the next, of some of them,
/// after i.
template <class Batch>
std::optional<double> mean_loss(const Ranks& ranks, const GPT& model, std::size_t items,
                                const Stop& stop, const Batch& batch) {
  GPT evaluated = model;  // the model itself keeps its mode
  xgrad::nn::eval(evaluated);
  const auto loss = [&](const auto& x, const auto& y) { return evaluated.loss(x, y); };
  double total = 0;
  for (std::size_t done = 0; done < items;) {
    if (stop(static_cast<double>(done) / static_cast<double>(items)))
      return std::nullopt;
    const auto [xy, taken] = batch(done);
    const auto& [x, y] = xy;
    total +=
        static_cast<double>(taken) * ranks.mean_loss(static_cast<std::size_t>(x.size(0)),
                                                     xgrad::parallel::detail::of_rows(loss, x, y));
    done += taken;
  }
  return total / static_cast<double>(items);
}

}  // namespace

std::optional<double> block_loss(const Ranks& ranks, const GPT& model, const Ids& part,
                                 std::size_t blocks, const Stop& stop) {
  return mean_loss(ranks, model, blocks, stop, [&](std::size_t done) {
    const std::size_t n = std::min(blocks_at_once, blocks - done);
    return std::pair(xgrad::text::block_batch(part, model.config.block_size, done, n), n);
  });
}

std::optional<double> estimate_loss(const Ranks& ranks, const GPT& model, const Ids& part,
                                    std::size_t batch_size, std::size_t batches, std::uint64_t seed,
                                    const Stop& stop) {
  xgrad::Generator generator(seed);
  return mean_loss(ranks, model, batches, stop, [&](std::size_t) {
    return std::pair(
        xgrad::text::random_batch(part, model.config.block_size, batch_size, generator),
        std::size_t{1});
  });
}

std::size_t final_blocks(const TrainOptions& options, const Ids& validation) {
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

namespace {

struct EvalOptions {
  std::string checkpoint;
  std::string data;   ///< empty: what the checkpoint was trained on
  std::string split;  ///< "train", "val" or "all"; empty: all of `data`, else "val"
  std::size_t threads = 0;
};

/// Says on standard error how far it is: on a terminal in a line that changes, otherwise in one
/// every ten seconds.
Stop show_progress() {
  using Clock = std::chrono::steady_clock;
  return [begin = Clock::now(), shown = Clock::now()](double done) mutable {
    const auto now = Clock::now();
    if (done > 0 && now - shown > std::chrono::milliseconds(can_redraw() ? 200 : 10'000)) {
      shown = now;
      const double spent = std::chrono::duration<double>(now - begin).count();
      draw(fmt::format("{}{:.0f} %, {} left{}", can_redraw() ? "\r" : "", 100 * done,
                       format_duration(spent * (1 - done) / done), can_redraw() ? "\x1b[K" : "\n"));
    }
    return false;
  };
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

  const std::string split = options.split.empty() && !named ? "val" : options.split;
  const bool train = split == "train", val = split == "val";
  const Ids& ids = train ? source.ids.train : val ? source.ids.validation : source.all;
  const std::string name = val                              ? source.validation_name
                           : ids.size() < source.all.size() ? "the training split of " + source.name
                                                            : source.name;
  if (ids.size() <= block_size)
    throw xgrad::FileError(fmt::format("{}: {} {} too few: a block of {} needs one more than that",
                                       name, xgrad::counted(ids.size(), "character", "characters"),
                                       ids.size() == 1 ? "is" : "are", block_size));
  const std::size_t blocks = xgrad::text::block_count(ids, block_size);
  // As training has cut its batches, so the loss is the same to the bit.
  const auto* const shards = notes.config.find<std::uint64_t>("shards");
  const Ranks one(shards != nullptr && *shards > 0 ? *shards : xgrad::parallel::default_shards);
  const auto measure = [&] {
    return block_loss(one, trained.model, ids, blocks, show_progress()).value();
  };
  const double loss = measure();
  draw(can_redraw() ? "\r\x1b[K" : "");
  if (!std::isfinite(loss))
    throw NotFinite(fmt::format("{}: the loss is {}\n{}", trained.path, loss,
                                first_anomaly([&] { measure(); })));
  print_loss(train ? "train_loss"
             : val ? "val_loss"
                   : "loss",
             loss, fmt::format("{} of {}", format_blocks(blocks, blocks), name),
             val ? source.entropy(blocks * block_size) : std::nullopt);
}

}  // namespace

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
