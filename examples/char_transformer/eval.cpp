// The command `eval`.

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <xgrad/autograd/error.hpp>

#include "output.hpp"
#include "progress.hpp"

namespace char_transformer {
namespace {

struct EvalOptions {
  std::string checkpoint;
  std::string data;   ///< empty: what the checkpoint was trained on
  std::string split;  ///< "train", "val" or "all"; empty: all of `data`, else "val"
  std::size_t threads = 0;
};

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
  const xgrad::text::Ids& ids = train ? source.ids.train : val ? source.ids.validation : source.all;
  const std::string name = val                              ? source.validation_name
                           : ids.size() < source.all.size() ? "the training split of " + source.name
                                                            : source.name;
  check_block(ids, name, block_size);
  const std::size_t blocks = xgrad::text::block_count(ids, block_size);
  // As training has cut its batches, so the loss is the same to the bit.
  Ranks one;
  const auto shards = notes.config.number("shards");
  one.share({}, shards >= 1 ? static_cast<std::size_t>(*shards) : xgrad::parallel::default_shards);
  Progress progress(0, 0, 0);
  const auto measure = [&] {
    return block_loss(one, trained.model, ids, blocks,
                      [&](double done) {
                        progress.evaluating(done);
                        return false;
                      })
        .value();
  };
  const double loss = measure();
  progress.clear();
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
  add_path(app, "--data", options->data,
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
