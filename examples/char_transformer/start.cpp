#include "start.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/io/checksum.hpp>
#include <xgrad/io/file.hpp>

#include "describe.hpp"
#include "output.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

namespace fs = std::filesystem;
using xgrad::FileError;

/// The latest unfinished run under runs/.  FileError that names those that are finished if there is
/// none.
std::string latest_unfinished() {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::vector<std::string> finished_runs;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("runs", none))
    if (const auto path = checkpoint_in(entry.path().string()))
      found.emplace_back(fs::last_write_time(*path, none), *path);
  std::sort(found.rbegin(), found.rend());
  for (const auto& [time, path] : found) {
    try {
      const xgrad::io::Checkpoint checkpoint = xgrad::io::load_checkpoint(path);
      const Notes notes = read_notes(checkpoint);
      check_finite(checkpoint.model, path);
      if (!finished(read_recipe(notes.config, path), checkpoint.step, notes.evaluations))
        return path;
      finished_runs.push_back(fmt::format("{} ({})", fs::path(path).parent_path().string(),
                                          xgrad::counted(checkpoint.step, "step", "steps")));
    } catch (const FileError& error) {
      warn(fmt::format("passed over: {}", error.what()));
    }
  }
  std::ranges::sort(finished_runs);
  throw FileError(
      finished_runs.empty()
          ? "there is nothing to resume: runs/ holds no checkpoint; without --resume a run begins"
          : fmt::format("there is nothing to resume, all runs are finished: {}; --resume DIR with "
                        "a larger --max-iters makes one longer",
                        fmt::join(finished_runs, ", ")));
}

/// The checkpoint that --resume means.  Empty if --out names a folder that has none, where a run
/// begins.  FileError if there is nothing to go on with.
std::string checkpoint_to_resume(const TrainOptions& options) {
  if (!options.resumes_by_name())
    return options.out.empty() ? latest_unfinished() : checkpoint_in(options.out).value_or("");
  const std::string& given = *options.resume;
  if (!fs::is_directory(given))  // a link goes on where it leads
    return fs::is_symlink(given) && fs::exists(given) ? fs::canonical(given).string() : given;
  if (auto path = checkpoint_in(given))
    return *path;
  throw FileError(
      fmt::format("{}: the folder has no checkpoint to go on from; --resume auto --out {} begins a "
                  "run in one that holds none",
                  given, quoted(given)));
}

/// The options of a run that goes on from a checkpoint; without one, of a new run, which may have
/// the weights of another.
Start read_start(const TrainOptions& given, const std::string& checkpoint) {
  Start start{.options = given};
  const bool resumes = !checkpoint.empty();
  if (!resumes && given.init_from.empty())
    return start;
  const std::string path = resumes ? checkpoint : find_checkpoint(given.init_from);
  start.from = xgrad::io::load_checkpoint(path);
  start.notes = read_notes(*start.from);
  const xgrad::io::Json& config = start.notes.config;
  read_model_config(*start.from, start.notes);  // do the tensors fit?
  check_finite(start.from->model, path);
  TrainOptions& options = start.options;
  if (resumes)
    options.recipe = read_recipe(config, path);

  const char* const whose = resumes ? "the run" : "the model";
  std::vector<std::string> differences, changes, changeable;
  const auto compare = [&](const char* flag, const auto& wanted, auto& value, const auto& found,
                           Keeps keeps) {
    value = found;
    if (given.given.count(flag) == 0 || wanted == found)
      return;
    value = wanted;
    if (keeps == Keeps::unless_allowed && given.allow_changes)
      changes.push_back(fmt::format("{} {} -> {}", flag, found, wanted));
    else if (keeps != Keeps::nothing)
      differences.push_back(
          fmt::format("{} {} is given, but {} has {}", flag, wanted, whose, found));
  };
  for_each_field([&]<class T>(const Field& field, T Recipe::*member) {
    if (field.keeps == Keeps::unless_allowed)
      changeable.push_back(field.flag);
    if (resumes || field.keeps == Keeps::size)
      if (const auto found = value_in<T>(config, field.flag, field.range))
        compare(field.flag, given.recipe.*member, options.recipe.*member, *found, field.keeps);
  });
  if (resumes) {
    start.resumed = start.from->step;
    const auto* const seed = config.find<std::uint64_t>("seed");
    const auto* const preset = config.find<std::string>("preset");
    if (seed == nullptr || preset == nullptr)
      throw FileError(fmt::format("{}: its configuration has no 'seed' or no 'preset'", path));
    compare("--seed", given.seed, options.seed, *seed, Keeps::recipe);
    compare("--preset", given.preset, options.preset, *preset, Keeps::recipe);
    const fs::path parent = fs::path(path).parent_path();
    options.out = parent.empty() ? "." : parent.string();
    std::error_code none;
    if (!given.out.empty() && !fs::equivalent(options.out, given.out, none))
      differences.push_back(
          fmt::format("--out {} is given, but the run has {}", given.out, options.out));
    if (options.recipe.max_iters < start.steps())
      differences.push_back(fmt::format("--max-iters {} is given, but the run has made {}",
                                        options.recipe.max_iters,
                                        format_count(start.steps(), "step", "steps")));
  }
  if (!differences.empty())
    throw FileError(fmt::format(
        "{}: the flags disagree with it:\n  {}\nLeave them out{}.", path,
        fmt::join(differences, "\n  "),
        !resumes ? ""
                 : fmt::format(", or begin a new run without --resume.  With --allow-changes, "
                               "these may be others: {}",
                               fmt::join(changeable, ", "))));
  start.changes = fmt::format("{}", fmt::join(changes, ", "));
  if (!resumes)
    return start;
  if (!is_checkpoint_name(fs::path(path).filename().string()))
    throw FileError(
        fmt::format("{}: not a file of a run's folder, in which a run could go on; --init-from "
                    "begins a new one "
                    "with its weights",
                    path));

  // What changes no number is as config.json says, unless it is given.
  const FolderNotes folder = read_folder_notes(path);
  for (const Count& count : counts)
    if (!(options.*count.member))
      options.*count.member = value_in<std::size_t>(
          folder.config, count.flag, {static_cast<double>(count.least), static_cast<double>(many)});
  if (given.given.count("--sample-prompt") == 0)  // it may be empty
    options.sample_prompt = folder.text("sample_prompt");
  if (options.data.empty())
    options.data = folder.text("data");
  if (options.val_data.empty())
    options.val_data = folder.text("val_data");
  options.init_from = folder.text("init_from");
  start.folder = folder;
  return start;
}

/// Whether there is nothing left to do; then says so.
bool has_ended(const Start& start) {
  const bool ended =
      start.resumed && finished(start.options.recipe, *start.resumed, start.notes.evaluations);
  if (ended)
    tell(fmt::format(
        "{}: the run is finished, after {}.  A larger {} makes it longer.\n", start.from->path,
        format_count(*start.resumed, "step", "steps"),
        *start.resumed < start.options.recipe.max_iters ? "--patience" : "--max-iters"));
  return ended;
}

/// All of a start but its options: the folder, and the text.
std::optional<Start> read_all(const TrainOptions& given, const std::string& checkpoint,
                              bool writes) {
  const bool resumes = !checkpoint.empty();
  // Where nothing is written, the folder need not be there: other ranks may not see it.
  const auto holds = resumes || !writes || given.overfit_one_batch ? RunDir::Holds::run
                     : given.resume                                ? RunDir::Holds::leftovers
                                                                   : RunDir::Holds::nothing;
  std::unique_ptr<RunDir> run_dir(resumes ? nullptr : new RunDir(given.out, holds));
  Start start = read_start(given, checkpoint);
  TrainOptions& options = start.options;
  if (has_ended(start))
    return std::nullopt;
  if (resumes) {
    run_dir = std::make_unique<RunDir>(options.out, holds);
    if (writes && !given.dry_run) {
      run_dir->lock();
      if (step_of(checkpoint) != *start.resumed)
        throw FileError(fmt::format("{}: another process has gone on with it", checkpoint));
    }
  }
  run_dir->check_input(options.data);
  run_dir->check_input(options.val_data);
  if (const auto wrong = contradiction(options.recipe))
    throw UsageError(*wrong);
  check_memory(options);
  if (resumes) {
    start.source = open_text(given.data, given.val_data, checkpoint, start.notes);
    if (const std::string flag = other_text(start.source, start.notes); !flag.empty())
      throw FileError(
          fmt::format("{}: another text than the run in {} {} on; {} FILE names it",
                      flag == "--data" ? start.source.name : start.source.validation_name,
                      options.out, flag == "--data" ? "is trained" : "validates", flag));
  } else {
    const auto& known = start.notes.characters;
    start.source = open_source(options.data, options.val_data, options.preset,
                               start.from ? std::optional(known) : std::nullopt);
  }
  check_blocks(start.source, options.recipe.block_size, start.from.has_value());

  if (start.from)
    tell("From", fmt::format("{}, after {}{}.", start.from->path,
                             format_count(start.from->step, "step", "steps"),
                             resumes && !given.init_from.empty()
                                 ? "; --init-from is for a new run, and not used"
                                 : ""));
  else if (given.resume && writes)
    tell("New", fmt::format("a new run: there is nothing to resume in {}.", options.out));
  if (!start.changes.empty())
    tell("Flags", fmt::format("changed from here on: {}.", start.changes));
  Evaluations before = resumes ? start.notes.evaluations : Evaluations{};
  // The best model of steps that are made again goes: the lowest loss of what follows is the best.
  if (resumes && fs::path(checkpoint).filename() != checkpoint_name &&
      step_of(run_dir->best()) > *start.resumed)
    before.best.reset();
  start.notes = {.config = to_json(options, start.source.characters.size()),
                 .characters = start.source.characters,
                 .text = checksum(start.source.all),
                 .val_text = options.val_data.empty() ? "" : checksum(start.source.ids.validation),
                 .evaluations = before};
  start.run_dir = std::move(run_dir);
  return start;
}

}  // namespace

TrainOptions resolved(const TrainOptions& given) {
  TrainOptions options = read_start(given, given.resume ? checkpoint_to_resume(given) : "").options;
  options.init_from = given.init_from;  // what a run began with is over
  return options;
}

std::optional<Start> prepare(const TrainOptions& given, const Ranks& ranks) {
  const bool writes = ranks.rank() == 0;
  ranks.check_same("the file of --config", xgrad::printable_name(config_file().text));
  std::string checkpoint;
  ranks.together([&] {
    if (given.resume && writes)
      checkpoint = checkpoint_to_resume(given);
  });
  checkpoint = ranks.text_of_first(checkpoint);
  std::optional<Start> start;
  ranks.together([&] {
    start = read_all(given, checkpoint, writes);
    if (!start)
      return;
    const Recipe& recipe = start->options.recipe;
    const std::size_t n = ranks.size(), parts = std::min(recipe.shards, recipe.batch_size);
    if (parts < n)
      throw UsageError(fmt::format(
          "{} ranks, but a batch of {} is cut into {}: start fewer ranks, or give --shards {}{}", n,
          xgrad::counted(recipe.batch_size, "block", "blocks"),
          xgrad::counted(parts, "shard", "shards"), n,
          recipe.batch_size < n ? fmt::format(" and --batch-size {}", n) : ""));
  });
  if (ranks.size() > 1) {
    ranks.check_same("the checkpoint",
                     start && start->from ? file_checksum(start->from->path) : "");
    ranks.check_same(
        "the text",
        start ? checksum(start->source.all) + checksum(start->source.ids.validation) : "");
  }
  return start;
}

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
  } catch (const FileError&) {
    return "";
  }
  return sum.digits();
}

std::string quoted(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-./=:,+@%") == word.npos)
    return word;
  std::string text = "'";
  for (const char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string resume_command(const TrainOptions& options, const std::string& folder) {
  // What would be taken for a flag, or for the word.
  const bool ambiguous = folder.starts_with('-') || folder == "auto";
  return fmt::format("{}{} train --resume {}{}", options.launcher, quoted(options.program),
                     quoted(ambiguous ? "./" + folder : folder),
                     options.threads > 0 ? fmt::format(" --threads {}", options.threads) : "");
}

}  // namespace char_transformer
