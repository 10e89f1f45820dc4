#include "resume.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/fail.hpp>

#include "output.hpp"
#include "run_dir.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

namespace fs = std::filesystem;
using xgrad::FileError;

/// What may be another when a run goes on: when it ends.
bool may_change(std::string_view flag) { return flag == "--max-iters" || flag == "--patience"; }

/// Throws FileError if there are differences.
void refuse(const std::string& path, const std::vector<std::string>& differences,
            const std::string& advice) {
  if (!differences.empty())
    throw FileError(fmt::format("{}: the flags disagree with it:\n  {}\n{}", path,
                                fmt::join(differences, "\n  "), advice));
}

template <class T>
std::string difference(const char* flag, const T& given, const T& found, const char* whose) {
  return fmt::format("{} {} is given, but {} has {}", flag, given, whose, found);
}

/// The latest unfinished run under runs/.  FileError that names those that are finished if there is
/// none.
std::string latest_unfinished() {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::vector<std::string> finished_runs;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("runs", none)) {
    std::error_code error;
    if (const auto path = checkpoint_in(entry.path().string()))
      if (const auto time = fs::last_write_time(*path, error); !error)
        found.emplace_back(time, *path);
  }
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
          : fmt::format(
                "there is nothing to resume, all runs are finished: {}; --resume DIR with a "
                "larger --max-iters makes one longer, and without --resume a new one begins",
                fmt::join(finished_runs, ", ")));
}

}  // namespace

std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain))
    return word;
  std::string text = "'";
  for (const char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

bool evaluation_due(const Recipe& recipe, std::uint64_t steps) {
  return steps > 0 && (steps == recipe.max_iters || steps % recipe.eval_interval == 0);
}

bool finished(const Recipe& recipe, std::uint64_t steps, const Evaluations& evaluations) {
  if (recipe.patience > 0 && evaluations.without_improvement >= recipe.patience)
    return true;
  const bool pending = evaluation_due(recipe, steps) && evaluations.last != steps;
  return steps >= recipe.max_iters && !pending;
}

std::optional<std::string> checkpoint_to_resume(const TrainOptions& options) {
  if (options.resumes_by_name()) {
    const std::string& given = *options.resume;
    if (!fs::is_directory(given))  // a link goes on where it leads
      return fs::is_symlink(given) && fs::exists(given) ? fs::canonical(given).string() : given;
    if (auto path = checkpoint_in(given))
      return path;
    throw FileError(fmt::format(
        "{}: the folder has no {} to go on from; {} --out {} begins a run there", given,
        checkpoint_name,
        fs::exists(fs::path(given) / "config.json")  // which has its flags
            ? fmt::format("train --config {} --resume auto", quoted(given + "/config.json"))
            : "--resume auto",
        quoted(given)));
  }
  if (options.out.empty())
    return latest_unfinished();
  return checkpoint_in(options.out);
}

ResumePoint read_resume_point(const std::string& path, const TrainOptions& given) {
  ResumePoint point{.folder = fs::path(path).parent_path().string(),
                    .checkpoint = xgrad::io::load_checkpoint(path),
                    .notes = {},
                    .options = given};
  if (point.folder.empty())
    point.folder = ".";
  point.notes = read_notes(point.checkpoint);
  read_model_config(point.checkpoint, point.notes);  // do the tensors fit?
  const xgrad::io::Json& config = point.notes.config;
  TrainOptions& options = point.options;
  options.recipe = read_recipe(config, path);
  if (!is_checkpoint_name(fs::path(path).filename().string()))
    throw FileError(
        fmt::format("{}: not a file of a run's folder, in which a run could go on; --init-from "
                    "begins a new one "
                    "with its weights",
                    path));
  check_finite(point.checkpoint.model, path);
  const char* const whose = "the run";
  std::vector<std::string> differences;
  for_each_field([&](const auto& field) {
    if (given.given.count(field.flag) == 0)
      return;
    auto& value = options.recipe.*field.member;
    const auto wanted = given.recipe.*field.member;
    const bool allowed = given.allow_changes && std::ranges::count(changeable, field.flag) > 0;
    if (allowed && value != wanted)
      point.changes.push_back(fmt::format("{} {} -> {}", field.flag, value, wanted));
    if (may_change(field.flag) || allowed)
      value = wanted;
    else if (value != wanted)
      differences.push_back(difference(field.flag, wanted, value, whose));
  });
  const auto* const seed = config.find<std::uint64_t>("seed");
  const auto* const preset = config.find<std::string>("preset");
  if (seed == nullptr || preset == nullptr)
    throw FileError(fmt::format("{}: its configuration has no 'seed' or no 'preset'", path));
  const auto same = [&](const char* flag, auto& wanted, const auto& found) {
    if (given.given.count(flag) != 0 && wanted != found)
      differences.push_back(difference(flag, wanted, found, whose));
    wanted = found;
  };
  same("--seed", options.seed, *seed);
  same("--preset", options.preset, *preset);
  std::error_code none;
  if (!given.out.empty() && !fs::equivalent(point.folder, given.out, none))
    differences.push_back(difference("--out", given.out, point.folder, whose));
  if (options.recipe.max_iters < point.checkpoint.step)
    differences.push_back(fmt::format("--max-iters {} is given, but the run has made {}",
                                      options.recipe.max_iters,
                                      xgrad::counted(point.checkpoint.step, "step", "steps")));
  refuse(path, differences,
         fmt::format("Leave them out, or begin a new run without --resume.  With --allow-changes, "
                     "these may be others: {}.",
                     fmt::join(changeable, ", ")));
  if (const auto wrong = contradiction(options.recipe))
    throw FileError(fmt::format("{}: its configuration: {}", path, *wrong));

  const FolderNotes notes = read_folder_notes(path);
  const auto fall_back = [&](std::optional<std::size_t>& given_count, const char* key,
                             std::size_t least) {
    if (!given_count)
      given_count = notes.count(key, least);
  };
  fall_back(options.save_interval, "save_interval", 1);
  fall_back(options.keep, "keep", 0);
  fall_back(options.sample_interval, "sample_interval", 0);
  fall_back(options.val_blocks, "val_blocks", 0);
  if (given.given.count("--sample-prompt") == 0)  // it may be empty
    options.sample_prompt = notes.text("sample_prompt");
  if (options.data.empty())
    options.data = notes.data.value_or("");
  if (options.val_data.empty())
    options.val_data = notes.text("val_data");
  options.init_from = notes.text("init_from");
  return point;
}

TrainOptions with_sizes_of(const xgrad::io::Checkpoint& checkpoint, const Notes& notes,
                           TrainOptions options) {
  const xgrad::nn::GPTConfig sizes = read_model_config(checkpoint, notes);
  Recipe& recipe = options.recipe;
  std::vector<std::string> differences;
  const auto fit = [&](const char* flag, auto& value, auto found) {
    if (options.given.count(flag) != 0 && value != found)
      differences.push_back(difference(flag, value, found, "the model"));
    value = found;
  };
  fit("--block-size", recipe.block_size, sizes.block_size);
  fit("--n-layer", recipe.n_layer, sizes.n_layer);
  fit("--n-head", recipe.n_head, sizes.n_head);
  fit("--n-embd", recipe.n_embd, sizes.n_embd);
  fit("--bias", recipe.bias, sizes.bias);
  refuse(checkpoint.path, differences, "The sizes are the model's: leave them out.");
  return options;
}

TrainOptions resolved(TrainOptions options) {
  if (options.resume)
    if (const auto checkpoint = checkpoint_to_resume(options)) {
      TrainOptions found = read_resume_point(*checkpoint, options).options;
      found.init_from = options.init_from;  // what the run began with is over
      return found;
    }
  if (options.init_from.empty())
    return options;
  const xgrad::io::Checkpoint checkpoint =
      xgrad::io::load_checkpoint(find_checkpoint(options.init_from));
  return with_sizes_of(checkpoint, read_notes(checkpoint), std::move(options));
}

std::string resume_command(const TrainOptions& options, const std::string& folder) {
  // What would be taken for a flag, or for the word.
  const bool ambiguous = folder.starts_with('-') || folder == "auto";
  return fmt::format("{}{} train --resume {}{}", options.launcher, quoted(options.program),
                     quoted(ambiguous ? "./" + folder : folder),
                     options.threads > 0 ? fmt::format(" --threads {}", options.threads) : "");
}

}  // namespace char_transformer
