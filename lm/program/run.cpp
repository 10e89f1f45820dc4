#include "run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>
#include <utility>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/autograd/version.hpp>
#include <xgrad/io/file.hpp>
#include <xgrad/lm/adapters.hpp>

#include "commands.hpp"
#include "output.hpp"
#include "training.hpp"

namespace program {
namespace {

namespace fs = std::filesystem;

/// The latest unfinished run under runs/.  A FileError names the finished ones if there is none.
std::string latest_unfinished() {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::vector<std::string> finished_runs;
  std::error_code none;
  for (const std::string& name : names_in("runs"))
    if (const auto path = checkpoint_in("runs/" + name))
      found.emplace_back(fs::last_write_time(*path, none), *path);
  std::sort(found.rbegin(), found.rend());
  for (const auto& [time, path] : found) {
    try {
      const xgrad::io::Checkpoint checkpoint = read_checkpoint(path);
      const CheckpointInfo info = read_checkpoint_info(checkpoint);
      check_finite(checkpoint.model, path);
      if (!finished(read_recipe(info.config, path), checkpoint.step, info.evaluations))
        return path;
      finished_runs.push_back(fs::path(path).parent_path().string());
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
/// begins.  FileError if there is nothing to resume.
std::string checkpoint_to_resume(const TrainOptions& options) {
  if (!options.resumes_by_name())
    return options.out.empty() ? latest_unfinished() : checkpoint_in(options.out).value_or("");
  const std::string path = find_checkpoint(*options.resume);
  // A link continues at its target.
  return fs::is_symlink(path) && fs::exists(path) ? fs::canonical(path).string() : path;
}

xgrad::nn::LoraOptions lora_options(const TrainOptions& given) {
  xgrad::nn::LoraOptions options{.rank = static_cast<xgrad::Size>(given.lora_rank), .targets = {}};
  options.alpha = given.lora_alpha > 0 ? given.lora_alpha : static_cast<double>(given.lora_rank);
  std::istringstream names(given.lora_targets);
  for (std::string name; std::getline(names, name, ',');)
    options.targets.push_back(name);
  return options;
}

/// UsageError for flags of adapters, if there are none.
void check_lora(const TrainOptions& given, bool has_adapters) {
  for (const char* const flag : {"--lora-alpha", "--lora-targets", "--base"})
    if (!has_adapters && given.given.contains(flag))
      fail<UsageError>("{} is for adapters: --lora-rank adds some", flag);
  if (given.given.contains("--lora-targets") && lora_options(given).targets.empty())
    throw UsageError("--lora-targets names no layer");
}

/// A warning if weights are trained further with the default rate, above their last; else empty.
std::string rate_note(const Run& run) {
  const TrainOptions& o = run.options;
  const double before = run.last_rate.value_or(1e-4);
  if (!run.from || o.given.contains("--learning-rate") || o.lora_rank > 0 ||
      before >= o.recipe.learning_rate)
    return "";
  return fmt::format(
      "--learning-rate is {:.4g} unless it is given, which may undo what these weights have "
      "learnt: {} {:.4g}.",
      o.recipe.learning_rate,
      run.last_rate ? "they were last trained with" : "fine-tuning usually takes", before);
}

/// Takes options from a model or a run, and compares the given flags with it.
struct Inherited {
  const std::set<std::string>& given;
  const char* of;  ///< "the run" or "the model"
  std::vector<std::string> differences = {}, changes = {};

  template <class Wanted, class Value, class Found>
  void take(const char* flag, const Wanted& wanted, Value& value, const Found& found,
            OnResume on_resume = OnResume::recipe) {
    value = found;
    if (!given.contains(flag) || wanted == found)
      return;
    value = wanted;
    if (on_resume == OnResume::unless_given)
      changes.push_back(fmt::format("{} {} -> {}", flag, found, wanted));
    else if (on_resume != OnResume::nothing)
      differences.push_back(fmt::format("{} {} is given, but {} has {}", flag, wanted, of, found));
  }
  /// FileError with all differences from the run or the model at `path`.
  void check(const std::string& path, const char* cure) const {
    if (!differences.empty())
      fail<FileError>("{}: the flags disagree with it:\n  {}\n{}.", path,
                      fmt::join(differences, "\n  "), cure);
  }
};

/// The options of the vocabulary, and of adapters that `from` has.
void inherit_model(Run& run, const TrainOptions& given, bool adapted, Inherited& inherited) {
  TrainOptions& options = run.options;
  const Vocabulary& vocabulary = run.info.vocabulary;
  inherited.take("--tokens", given.tokens, options.tokens,
                 std::string(vocabulary.pairs() ? "bpe" : "characters"));
  options.vocab_size.reset();
  if (vocabulary.pairs())
    inherited.take("--vocab-size", given.vocab_size.value_or(0), options.vocab_size,
                   value_in<std::size_t>(run.info.config, "--vocab-size", vocab_sizes)
                       .value_or(vocabulary.size()));
  const auto lora = run.info.lora ? run.info.lora->options : xgrad::nn::LoraOptions{.rank = 0};
  const double alpha = lora.alpha.value_or(static_cast<double>(lora.rank));
  if (adapted) {
    inherited.take("--lora-rank", given.lora_rank, options.lora_rank,
                   static_cast<std::size_t>(lora.rank));
    inherited.take("--lora-alpha", given.lora_alpha, options.lora_alpha, alpha);
    inherited.take("--lora-targets", given.lora_targets, options.lora_targets,
                   fmt::format("{}", fmt::join(lora.targets, ",")));
  }
  options.lora_alpha = alpha;
}

/// A run that draws its weights.
Run new_run(const TrainOptions& given, RunDir::Holds holds) {
  Run run{.options = given, .run_dir = std::make_unique<RunDir>(given.out, holds)};
  if (given.lora_rank > 0)
    throw UsageError("--lora-rank adds adapters to a model: --init-from names it");
  check_lora(given, false);
  return run;
}

/// A run that begins with the weights of --init-from, and has its sizes and its vocabulary.
Run tuned_run(const TrainOptions& given, RunDir::Holds holds) {
  Run run{.options = given, .run_dir = std::make_unique<RunDir>(given.out, holds)};
  TrainedModel trained =
      holds_weights_alone(given.init_from)
          ? read_weights(given.init_from, given.data,
                         given.given.contains("--n-head") ? given.recipe.n_head : 0)
          : read_trained_model(given.init_from, given.base);
  run.from.emplace().path = trained.path;
  run.from->model = xgrad::nn::state_dict(trained.model);
  run.about = std::move(trained.about);
  run.info = std::move(trained.info);
  const xgrad::io::Json& config = run.info.config;
  if (config.find("learning_rate") != nullptr)  // of a run
    run.last_rate = schedule_of(read_recipe(config, trained.path))(
        std::max<std::uint64_t>(step_of(trained.path), 1) - 1);
  const bool adapted = run.info.lora.has_value();
  if (!adapted && given.lora_rank > 0)
    run.info.lora = {lora_options(given), fs::absolute(trained.path).lexically_normal().string(),
                     xgrad::lm::base_checksum(run.from->model)};
  if (run.info.lora)
    xgrad::io::format_json(run.info.lora->base);  // or no checkpoint could name it
  check_lora(given, run.info.lora.has_value());

  Inherited inherited{given.given, "the model"};
  Recipe& recipe = run.options.recipe;
  for_each_field([&]<class T>(const Field& field, T Recipe::* member) {
    const bool shorter = run.info.model && field.flag == std::string_view("--block-size");
    if (const auto found = value_in<T>(config, field.flag, field.range);
        found && field.on_resume == OnResume::size && !shorter)
      inherited.take(field.flag, given.recipe.*member, recipe.*member, *found, field.on_resume);
  });
  if (const auto& model = run.info.model)  // a pretrained model takes shorter blocks
    inherited.take("--block-size", given.recipe.block_size, recipe.block_size,
                   std::min<std::size_t>(given.recipe.block_size, model->block_size),
                   OnResume::size);
  inherit_model(run, given, adapted, inherited);
  inherited.check(trained.path, "Omit them");
  return run;
}

/// Options that change no number default to config.json's.
void inherit_harmless(TrainOptions& options, const TrainOptions& given) {
  const xgrad::io::Json before = read_object(options.out + "/config.json");
  for (const Count& count : counts)
    if (!(options.*count.member))
      options.*count.member = value_in<std::size_t>(before, count.flag, {count.least, many});
  if (!given.given.contains("--sample-prompt"))  // the empty prompt is valid
    options.sample_prompt = text_in(before, "sample_prompt");
  if (options.data.empty())
    options.data = text_in(before, "data");
  if (options.val_data.empty())
    options.val_data = text_in(before, "val_data");
  options.init_from = text_in(before, "init_from");
}

/// The run of a checkpoint, from where it stopped.
Run resumed_run(const TrainOptions& given, const std::string& path, RunDir::Holds holds) {
  Run run{.options = given, .from = read_checkpoint(path)};
  run.info = read_checkpoint_info(*run.from);
  add_base(*run.from, run.info, given.base);
  read_model_config(*run.from, run.info);  // do the tensors fit?
  check_finite(run.from->model, path);
  run.resumed = run.from->step;
  run.about = fmt::format("{}, after {}", path, format_count(run.steps(), "step"));
  const xgrad::io::Json& config = run.info.config;
  TrainOptions& options = run.options;
  options.recipe = read_recipe(config, path);
  const fs::path parent = fs::path(path).parent_path();
  options.out = parent.empty() ? "." : parent.string();

  Inherited inherited{given.given, "the run"};
  for_each_field([&](const Field& field, auto member) {
    const auto found = options.recipe.*member;
    inherited.take(field.flag, given.recipe.*member, options.recipe.*member, found,
                   field.on_resume);
  });
  inherit_model(run, given, true, inherited);
  const auto* const seed = config.find<std::uint64_t>("seed");
  inherited.take("--seed", given.seed, options.seed, seed == nullptr ? 0 : *seed);
  const std::string dtype = text_in(config, "dtype");
  inherited.take("--dtype", given.dtype, options.dtype, dtype.empty() ? "float32" : dtype);
  inherited.take("--document-end", given.document_end, options.document_end,
                 text_in(config, "document_end"));
  inherited.take("--preset", given.preset, options.preset, text_in(config, "preset"));
  std::vector<std::string>& differences = inherited.differences;
  if (std::error_code none; !given.out.empty() && !fs::equivalent(options.out, given.out, none))
    differences.push_back(
        fmt::format("--out {} is given, but the run has {}", given.out, options.out));
  if (options.recipe.max_iters < run.steps())
    differences.push_back(fmt::format("--max-iters {} is given, but the run has made {}",
                                      options.recipe.max_iters, format_count(run.steps(), "step")));
  inherited.check(path, "Omit them, or begin a new run");
  run.changes = fmt::format("{}", fmt::join(inherited.changes, ", "));
  if (!is_checkpoint_name(fs::path(path).filename().string()))
    fail<FileError>(
        "{}: not a file of a run's folder, so it cannot be resumed; --init-from begins a new one "
        "with its weights",
        path);
  inherit_harmless(options, given);
  run.run_dir = std::make_unique<RunDir>(options.out, holds);
  return run;
}

/// Reads the texts, and checks that they are those of a resumed run and long enough.
void open_texts(Run& run, const TrainOptions& given) {
  const TrainOptions& options = run.options;
  for (const std::string& read :
       {options.data, options.val_data, run.resumed ? std::string() : config_file.path})
    run.run_dir->check_input(read);
  if (!run.info.model)
    check_recipe(options.recipe);
  Dataset& dataset = run.dataset;
  if (run.resumed) {
    dataset = open_run_dataset(given.data, given.val_data, run.from->path, run.info);
    if (const std::string flag = other_text(dataset, run.info); !flag.empty())
      fail<FileError>("{}: another text than the run in {} {} on; {} FILE names it",
                      flag == "--data" ? dataset.name : dataset.validation_name, options.out,
                      flag == "--data" ? "is trained" : "validates", flag);
  } else {
    dataset = open_dataset(options.data, options.val_data, options.preset,
                           run.from ? std::optional(run.info.vocabulary) : std::nullopt,
                           options.vocab_size.value_or(0));
  }
  const Vocabulary& vocabulary = dataset.vocabulary;
  dataset.document_end = document_end_of(options.document_end, vocabulary);
  check_document_end(options.document_end, dataset.ids.train, dataset.training_name, vocabulary);
  for (const auto& [ids, name] : {std::pair(&dataset.ids.train, &dataset.training_name),
                                  {&dataset.ids.validation, &dataset.validation_name}})
    check_block(*ids, *name, options.recipe.block_size, vocabulary);
}

/// Prints where the run begins.
void announce(const Run& run, const TrainOptions& given, bool writes) {
  if (run.from)
    tell(labelled("From", fmt::format("{}{}.", run.about,
                                      run.resumed && !given.init_from.empty()
                                          ? "; --init-from is for a new run, and not used"
                                          : "")));
  else if (given.resume && writes)
    tell(labelled("New",
                  fmt::format("a new run: there is nothing to resume in {}.", run.options.out)));
  if (const std::string note = run.resumed ? "" : rate_note(run); !note.empty())
    tell(labelled("Note", note));
  if (!run.changes.empty())
    tell(labelled("Flags", fmt::format("changed from here on: {}.", run.changes)));
}

std::optional<Run> read_all(const TrainOptions& given, const std::string& checkpoint,
                            const Ranks& ranks) {
  const bool resumes = !checkpoint.empty(), writes = ranks.rank() == 0;
  // If nothing is written, the folder need not exist: other ranks may not see it.
  const auto holds = resumes || !writes || given.overfit_one_batch ? RunDir::Holds::run
                     : given.resume                                ? RunDir::Holds::leftovers
                                                                   : RunDir::Holds::nothing;
  if (!given.out.empty() && has_model_type(given.out))
    fail<FileError>("{}: is a pretrained model's folder, in which a run would write: name another",
                    given.out);
  Run run = resumes                    ? resumed_run(given, checkpoint, holds)
            : !given.init_from.empty() ? tuned_run(given, holds)
                                       : new_run(given, holds);
  const Recipe& recipe = run.options.recipe;
  if (resumes && finished(recipe, run.steps(), run.info.evaluations)) {
    tell(fmt::format("{}: the run is finished, after {}.  A larger --max-iters makes it longer.\n",
                     checkpoint, format_count(run.steps(), "step")));
    return std::nullopt;
  }
  if (resumes && writes && !given.dry_run) {
    run.run_dir->lock();
    if (step_of(checkpoint) != run.steps())
      fail<FileError>("{}: another process has continued it, or it can no longer be read",
                      checkpoint);
  }
  open_texts(run, given);
  announce(run, given, writes);
  if (!resumes)
    run.info.evaluations = {};
  run.info.config = to_json(run.options, run.dataset.vocabulary.size());
  run.info.vocabulary = run.dataset.vocabulary;
  run.info.text = run.dataset.sum;
  run.info.val_text = run.dataset.val_sum;
  if (const auto parts = xgrad::parallel::shard_count(recipe.batch_size); parts < ranks.size())
    fail<UsageError>(
        "{} ranks, but a batch of {} is cut into {}: start fewer ranks, no more than the {} shards "
        "of a large batch",
        ranks.size(), format_count(recipe.batch_size, "block"), format_count(parts, "shard"),
        xgrad::parallel::default_shards);
  return run;
}

}  // namespace

std::string describe_build() {
  const std::string commit = *build_commit == 0 ? "" : fmt::format(" (commit {})", build_commit);
  return fmt::format("xgrad {}{}, {}", xgrad::version(), commit, build_compiler);
}

std::optional<Run> prepare(const TrainOptions& given, const Ranks& ranks) {
  const bool writes = ranks.rank() == 0;
  ranks.check_same("the file of --config", xgrad::printable_name(config_file.text));
  std::string checkpoint;
  ranks.together([&] {
    if (given.resume && writes)
      checkpoint = checkpoint_to_resume(given);
  });
  checkpoint = ranks.text_of_first(checkpoint);
  std::optional<Run> run;
  ranks.together([&] { run = read_all(given, checkpoint, ranks); });
  if (ranks.size() > 1) {
    ranks.check_same("the checkpoint", run && run->from ? file_checksum(run->from->path) : "");
    ranks.check_same("the model that adapters are for",
                     run && run->info.lora ? run->info.lora->base_checksum : "");
    ranks.check_same("the text", run ? run->dataset.sum + run->dataset.val_sum : "");
  }
  return run;
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

std::string resume_command(const TrainOptions& options, const std::string& folder) {
  const auto quoted = [](const std::string& word) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,@%+-";
    if (word.find_first_not_of(plain) == word.npos)
      return word;
    std::string text = "'";
    for (const char c : word)
      text += c == '\'' ? "'\\''" : std::string(1, c);
    return text + "'";
  };
  // The name would be taken for a flag, or for the word `auto`.
  const bool ambiguous = folder.starts_with('-') || folder == "auto";
  return fmt::format("{}{} train --resume {}{}", options.launcher, quoted(options.program),
                     quoted(ambiguous ? "./" + folder : folder),
                     options.threads > 0 ? fmt::format(" --threads {}", options.threads) : "");
}

std::string describe(const Run& run, const xgrad::lm::GPT& model) {
  const Recipe& r = run.options.recipe;
  const Dataset& dataset = run.dataset;
  const auto& [train, validation] = dataset.ids;
  const Vocabulary& vocabulary = dataset.vocabulary;
  const std::size_t known = vocabulary.size(), batches = r.gradient_accumulation_steps,
                    asked = run.options.vocab_size.value_or(0);
  const bool apart = !run.options.val_data.empty();
  std::string text = fmt::format("{}: {} {}s of a vocabulary of {}", dataset.name,
                                 format_count(train.size() + (apart ? 0 : validation.size())),
                                 vocabulary.unit(), format_count(known));
  if (known < asked && !run.info.model)
    text += fmt::format(" and not {}, because no pairs are left", asked);
  text += fmt::format("; {} to train on, {} to validate{}.", format_count(train.size()),
                      format_count(validation.size()),
                      apart ? ", from " + dataset.validation_name : "");
  if (const auto& end = dataset.document_end; !end.empty()) {
    const std::string id = end_id(run.options.document_end, vocabulary),
                      shown = xgrad::printable_name(vocabulary.decode(end));
    text += id.empty() ? fmt::format(" '{}'", shown) : fmt::format(" The id {} ('{}')", id, shown);
    text +=
        fmt::format(" ends {} to train on.", format_count(count_documents(train, end), "document"));
  }
  std::string loss = fmt::format("a uniform guess has ln {} = {:.4f}", known,
                                 std::log(static_cast<double>(known)));
  if (const auto entropy =
          dataset.entropy(xgrad::lm::block_count(validation, r.block_size) * r.block_size))
    loss += fmt::format("; no model can beat {:.4f}, the entropy of the text itself", *entropy);
  std::string size =
      fmt::format("n_layer {}, n_head {}, n_embd {}: {} parameters", r.n_layer, r.n_head, r.n_embd,
                  format_count(xgrad::nn::num_parameters(model)));
  if (const auto& lora = run.info.lora) {
    xgrad::Size trained = 0;
    for (const auto& [name, x] : xgrad::nn::named_parameters(model))
      trained += x.requires_grad() ? x.numel() : 0;
    size += fmt::format(
        ", of which adapters of rank {} are trained: {}, {:.4f} %", lora->options.rank,
        format_count(trained),
        100 * static_cast<double>(trained) / static_cast<double>(xgrad::nn::num_parameters(model)));
  }
  const std::string steps =
      fmt::format("{} of {} ({}{} of {}), on {}, seed {}.", format_count(r.max_iters),
                  vocabulary.count(r.batch_size * r.block_size * batches),
                  batches > 1 ? fmt::format("{} batches of ", batches) : "",
                  format_count(r.batch_size, "block"), r.block_size,
                  format_count(xgrad::num_threads(), "thread"), run.options.seed);
  const auto rate = schedule_of(r);
  const std::size_t first = run.steps(), last = std::max<std::size_t>(r.max_iters, 1) - 1,
                    highest = std::clamp(r.warmup_iters, std::min(first, last), last);
  const std::string rates =
      highest > first
          ? fmt::format("from {:.4g} to {:.4g} at step {}, and {:.4g} at the last; lowest {:.4g}.",
                        rate(first), rate(highest), format_count(highest), rate(last),
                        std::min(rate(first), rate(last)))
          : fmt::format("{:.4g} at step {}, and {:.4g} at the last.", rate(first),
                        format_count(first), rate(last));
  // A small text is evaluated as long as a large one.
  const std::size_t evaluated = r.eval_iters * r.batch_size * r.block_size,
                    times = evaluated / std::max<std::size_t>(validation.size(), 1);
  const std::string evaluation = fmt::format(
      "{}every {}, over {} of {}{}.", first == 0 ? "before the first step and " : "",
      format_count(r.eval_interval, "step"), format_batches(r.eval_iters),
      vocabulary.count(r.batch_size * r.block_size),
      times < 10
          ? ""
          : fmt::format(": {} times the text to validate on, and fewer --eval-iters take less time",
                        format_count(times)));
  const std::string& dtype = run.options.dtype;
  return labelled(
             "Build",
             fmt::format("{}; {}, {}; matrix products by {}.", describe_build(), xgrad::simd_name(),
                         dtype, dtype == "float32" ? xgrad::blas_name() : xgrad::bfloat16_name())) +
         labelled("Text", text) + labelled("Loss", loss + ".") + labelled("Model", size + ".") +
         labelled("Steps", steps) + labelled("Rate", rates) + labelled("Eval", evaluation);
}

std::string format_environment(std::size_t ranks) {
  utsname system{};
  ::uname(&system);
  const xgrad::io::JsonObject environment{
      {"build", describe_build()},
      {"instructions", xgrad::simd_name()},
      {"threads", std::uint64_t{xgrad::num_threads()}},
      {"ranks", std::uint64_t{ranks}},
      {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)}};
  return xgrad::io::format_json(environment, xgrad::io::InvalidUtf8::replaced, 2);
}

}  // namespace program
