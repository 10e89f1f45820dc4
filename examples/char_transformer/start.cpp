#include "start.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/io/checksum.hpp>
#include <xgrad/io/file.hpp>

#include "describe.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "resume.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

Notes notes_of(const TrainOptions& options, const Source& source) {
  return {.config = to_json(options, source.characters.size()),
          .characters = source.characters,
          .text = checksum(source.all),
          .val_text = options.val_data.empty() ? "" : checksum(source.ids.validation)};
}

Start begin(TrainOptions options, bool writes) {
  // Where nothing is written, the folder need not be there: other ranks may not see it.
  std::unique_ptr<RunDir> run_dir(
      writes ? new RunDir(RunDir::fresh(options.out, options.resume.has_value()))
             : new RunDir(RunDir::resumed(options.out)));
  run_dir->check_input(options.data);
  run_dir->check_input(options.val_data);
  std::optional<xgrad::io::Checkpoint> from;
  std::optional<xgrad::text::Characters> characters;
  if (!options.init_from.empty()) {
    from = xgrad::io::load_checkpoint(find_checkpoint(options.init_from));
    const Notes notes = read_notes(*from);
    check_finite(from->model, from->path);
    options = with_sizes_of(*from, notes, std::move(options));
    characters = notes.characters;
  }
  if (const auto wrong = contradiction(options.recipe))
    throw UsageError(*wrong);
  check_memory(options);
  Source source = open_source(options.data, options.val_data, options.preset, characters);
  check_blocks(source, options.recipe.block_size, characters.has_value());
  check_memory(options, source.characters.size());
  if (options.resume && writes)
    tell("New", fmt::format("a new run: there is nothing to resume in {}.", options.out));
  if (from)
    tell("From",
         fmt::format("{}, after {}.", from->path, format_count(from->step, "step", "steps")));
  Notes notes = notes_of(options, source);
  return {.options = std::move(options),
          .source = std::move(source),
          .run_dir = std::move(run_dir),
          .from = std::move(from),
          .notes = std::move(notes)};
}

/// Whether there is nothing left to do; then says so.
bool has_ended(const ResumePoint& point, const RunDir& run_dir) {
  const Recipe& recipe = point.options.recipe;
  const std::uint64_t steps = point.checkpoint.step;
  const Evaluations& evaluations = point.notes.evaluations;
  const bool best_is_due = best_is_missing(run_dir, evaluations) && evaluations.best->step == steps;
  const bool ended = finished(recipe, steps, evaluations) && !best_is_due;
  if (ended)
    tell(fmt::format("{}: the run is finished, after {}.  A larger {} makes it longer.\n",
                     point.checkpoint.path, format_count(steps, "step", "steps"),
                     steps < recipe.max_iters ? "--patience" : "--max-iters"));
  return ended;
}

std::optional<Start> go_on(const std::string& checkpoint, const TrainOptions& given, bool writes) {
  ResumePoint point = read_resume_point(checkpoint, given);
  std::unique_ptr<RunDir> run_dir(new RunDir(RunDir::resumed(point.folder)));
  run_dir->check_input(point.options.data);
  run_dir->check_input(point.options.val_data);
  if (has_ended(point, *run_dir))
    return std::nullopt;
  if (writes && !given.dry_run) {
    run_dir->lock();
    // Until now another process may have gone on with it.
    point = read_resume_point(checkpoint, given);
    if (has_ended(point, *run_dir))
      return std::nullopt;
  }
  TrainOptions& options = point.options;
  check_memory(options);
  Source source = open_text(given.data, given.val_data, checkpoint, point.notes);
  check_blocks(source, options.recipe.block_size, true);
  if (const std::string flag = other_text(source, point.notes); !flag.empty())
    throw xgrad::FileError(
        fmt::format("{}: another text than the run in {} {} on; {} FILE names it",
                    flag == "--data" ? source.name : source.validation_name, point.folder,
                    flag == "--data" ? "is trained" : "validates", flag));
  const std::uint64_t steps = point.checkpoint.step;
  tell("From",
       fmt::format("{}, after {}{}.", checkpoint, format_count(steps, "step", "steps"),
                   given.init_from.empty() ? "" : "; --init-from is for a new run, and not used"));
  const std::string changes = fmt::format("{}", fmt::join(point.changes, ", "));
  if (!changes.empty())
    tell("Flags", fmt::format("changed from here on: {}.", changes));
  Notes notes = notes_of(options, source);
  notes.evaluations = point.notes.evaluations;
  return Start{.options = std::move(options),
               .source = std::move(source),
               .run_dir = std::move(run_dir),
               .from = std::move(point.checkpoint),
               .resumed = steps,
               .notes = std::move(notes),
               .config = read_folder_notes(checkpoint).config,
               .changes = changes};
}

}  // namespace

std::string file_checksum(const std::string& path) {
  xgrad::io::Checksum sum;
  try {
    const xgrad::io::ReadFile file(path);
    std::vector<char> some(1 << 20);
    for (std::uint64_t at = 0; at < file.size(); at += some.size()) {
      const std::size_t n = std::min<std::uint64_t>(some.size(), file.size() - at);
      file.read(some.data(), n, at);
      sum.add(some.data(), n);
    }
  } catch (const xgrad::FileError&) {
    return "";
  }
  return sum.digits();
}

void load_weights(Start& start, Training& training) {
  if (!start.from)
    return;
  if (start.resumed)
    xgrad::io::restore(*start.from, training.model(), training.optimizer());
  else
    xgrad::io::load_state(training.model(), start.from->model, start.from->path);
  start.from.reset();
}

bool best_is_missing(const RunDir& run_dir, const Evaluations& evaluations) {
  return evaluations.best && step_of(run_dir.best()) < evaluations.best->step;
}

std::optional<Start> prepare(const TrainOptions& options, const Ranks& ranks) {
  const bool writes = ranks.rank() == 0;
  ranks.check_same("the file of --config", xgrad::printable_name(config_file().text));
  std::string checkpoint;
  ranks.together([&] {
    if (options.resume && writes)
      checkpoint = checkpoint_to_resume(options).value_or("");
  });
  checkpoint = ranks.text_of_first(checkpoint);
  std::optional<Start> start;
  ranks.together([&] {
    if (checkpoint.empty())
      start = begin(options, writes && !options.overfit_one_batch);
    else
      start = go_on(checkpoint, options, writes);
    if (!start)
      return;
    const Recipe& recipe = start->options.recipe;
    if (const std::size_t parts = std::min(recipe.shards, recipe.batch_size); parts < ranks.size())
      throw UsageError(fmt::format(
          "{} ranks, but a batch of {} is cut into {}: start "
          "fewer ranks, or give --shards {}{}",
          ranks.size(), xgrad::counted(recipe.batch_size, "block", "blocks"),
          xgrad::counted(parts, "shard", "shards"), ranks.size(),
          recipe.batch_size < ranks.size() ? fmt::format(" and --batch-size {}", ranks.size())
                                           : ""));
  });
  if (ranks.size() > 1) {
    ranks.check_same("the number of steps",
                     start ? std::to_string(start->resumed.value_or(0)) : "none");
    ranks.check_same("the checkpoint",
                     start && start->from ? file_checksum(start->from->path) : "");
    ranks.check_same(
        "the text",
        start ? checksum(start->source.all) + checksum(start->source.ids.validation) : "");
  }
  return start;
}

}  // namespace char_transformer
