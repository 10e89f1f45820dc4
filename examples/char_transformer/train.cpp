#include "train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <xgrad/autograd/profile.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/autograd/threads.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/chrome_trace.hpp>

#include "command_line/command_line.hpp"
#include "evaluate.hpp"
#include "needs.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "resume.hpp"
#include "run_dir.hpp"
#include "sample.hpp"
#include "saves.hpp"
#include "source.hpp"
#include "stop.hpp"
#include "trained_model.hpp"
#include "training.hpp"

namespace char_transformer {
namespace {

/// The first steps are slower than all that follow.
constexpr std::size_t profile_from = 10, profiled_steps = 10;

/// Whether best.safetensors is not of the lowest loss, as it could not be saved.
bool best_is_missing(const RunDir& run_dir, const Evaluations& evaluations) {
  return evaluations.best && step_of(run_dir.best()) < evaluations.best->step;
}

class Run {
 public:
  /// A new run, or one that is resumed after so many steps.
  Run(const TrainOptions& options, const Source& source, Training& training, RunDir& run_dir,
      std::optional<std::uint64_t> resumed = {}, const Evaluations& evaluations = {})
      : options_(options),
        recipe_(options.recipe),
        source_(source),
        training_(training),
        run_dir_(run_dir),
        first_(resumed.value_or(0)),
        steps_(first_),
        notes_{.config = to_json(options, source.characters.size()),
               .characters = source.characters,
               .text = checksum(source.ids),
               .evaluations = evaluations},
        progress_(first_, recipe_.max_iters, training.tokens_per_step()),
        saves_(
            run_dir, options.keep.value_or(0), resumed,
            [this](const std::string& path) { write(path); },
            [this](const std::string& line) { progress_.warn(line); }) {}

  /// To its end; the exit code.
  int go();

 private:
  void describe() const;
  double estimated_seconds(double ms_per_token) const;
  bool evaluation_pending() const {
    return evaluation_due(recipe_, steps_) && notes_.evaluations.last != steps_;
  }
  bool ended() const { return finished(recipe_, steps_, notes_.evaluations); }
  void save_missing_best();
  void make_steps();
  void show(const xgrad::Profile& profile);
  void conclude(std::optional<StepRecord> record);
  std::optional<double> evaluate() const;
  void open_folder();
  void log(const StepRecord& record);
  void write(const std::string& path);
  int stopped();
  int completed();
  int exit_code(int code);

  const TrainOptions& options_;
  const Recipe& recipe_;
  const Source& source_;
  Training& training_;
  RunDir& run_dir_;
  std::uint64_t first_;  ///< steps made before
  std::uint64_t steps_;  ///< steps made
  Notes notes_;
  Progress progress_;
  Saves saves_;
  std::optional<double> val_loss_;  ///< over the whole validation split, in the end
  const StopSignals* signals_ = nullptr;
  int signal_ = 0;
};

void Run::describe() const {
  say(fmt::format("Model: n_layer {}, n_head {}, n_embd {}: {} parameters.\n", recipe_.n_layer,
                  recipe_.n_head, recipe_.n_embd,
                  format_count(xgrad::nn::num_parameters(training_.model()))));
  const auto [train, validation] =
      std::pair(source_.ids.train.size(), source_.ids.validation.size());
  say(fmt::format("Text:  {}: {} characters, {} different; {} to train on, {} to validate.\n",
                  source_.name, format_count(train + validation), source_.characters.size(),
                  format_count(train), format_count(validation)));
  const std::size_t n = recipe_.gradient_accumulation_steps;
  say(fmt::format("Steps: {} of {} characters ({}{} blocks of {}), on {} threads ({}), seed {}.\n",
                  format_count(recipe_.max_iters), format_count(training_.tokens_per_step()),
                  n > 1 ? fmt::format("{} batches of ", n) : "", recipe_.batch_size,
                  recipe_.block_size, xgrad::num_threads(), xgrad::simd_name(), options_.seed));
  if (recipe_.max_iters > 0 && recipe_.max_iters <= recipe_.warmup_iters)
    say(fmt::format(
        "Note:  the learning rate rises to the end: --warmup-iters {}, --max-iters {}.\n",
        recipe_.warmup_iters, recipe_.max_iters));
}

double Run::estimated_seconds(double ms_per_token) const {
  // A forward pass alone is about a third of a step.
  const std::uint64_t end = recipe_.max_iters, interval = recipe_.eval_interval;
  const std::size_t evaluations = steps_ < end ? (end - 1) / interval - steps_ / interval : 0;
  const double tokens =
      static_cast<double>(end - steps_) * static_cast<double>(training_.tokens_per_step()) +
      (static_cast<double>(evaluations) * static_cast<double>(recipe_.eval_iters) *
           static_cast<double>(recipe_.batch_size * recipe_.block_size) +
       static_cast<double>(source_.ids.validation.size())) /
          3;
  return ms_per_token * tokens / 1000;
}

void Run::write(const std::string& path) {
  run_dir_.check_lock();
  run_dir_.metrics().sync();  // no checkpoint without its rows, not even after a power cut
  xgrad::io::save_checkpoint(path, training_.model(), training_.optimizer(),
                             {.step = steps_, .user = to_json(notes_)});
}

/// A folder is made when there is something to put in it.
void Run::open_folder() {
  if (run_dir_.is_open())
    return;
  run_dir_.open(format_folder_notes(options_, source_.characters.size()), first_);
  progress_.line(fmt::format("Run:   {}", run_dir_.path()));
}

void Run::log(const StepRecord& record) {
  Metrics& metrics = run_dir_.metrics();
  const bool all_were_written = metrics.unwritten() == 0;
  if (!metrics.log(record) && all_were_written)
    progress_.warn(metrics.error() + "; training goes on, and its rows are kept until it works");
}

/// The whole validation split after the last step, an estimate after every eval_interval steps.
std::optional<double> Run::evaluate() const {
  const auto stop = [this](double) { return signals_->received() != 0; };
  if (steps_ == recipe_.max_iters)
    return validation_loss(training_.model(), source_.ids.validation, stop);
  return estimate_loss(training_.model(), source_.ids.validation, recipe_.batch_size,
                       recipe_.eval_iters, options_.seed, stop);
}

/// What follows a step's update: its evaluation, its row, and saving.
void Run::conclude(std::optional<StepRecord> record) {
  bool lowest = false;
  if (evaluation_pending()) {
    if (const std::optional<double> loss = evaluate()) {
      if (!std::isfinite(*loss))
        throw NotFinite(fmt::format("step {}: after its update the validation loss is {}\n{}",
                                    steps_ - 1, *loss, first_anomaly([&] { evaluate(); })));
      lowest = notes_.evaluations.add(steps_, *loss);
      if (record)
        record->val_loss = loss;
      if (steps_ == recipe_.max_iters)
        val_loss_ = loss;
      else
        progress_.line(
            fmt::format("after {} steps: validation loss {:.4f} (estimate)", steps_, *loss));
    }
  }
  if (record)
    log(*record);
  if (lowest)  // before the checkpoint, which says which is the best
    saves_.save_best();
  const std::size_t interval = options_.save_interval.value_or(recipe_.eval_interval);
  const bool save_point = steps_ % interval == 0 && !evaluation_pending();
  if (!ended() && (save_point || saves_.retry_due()))
    saves_.save(steps_, save_point);
}

void Run::show(const xgrad::Profile& profile) {
  progress_.line(profile.table());
  try {
    xgrad::io::write_chrome_trace(run_dir_.path() + "/trace.json", profile.events());
  } catch (const xgrad::FileError& error) {
    progress_.warn(error.what());
  }
}

/// Of a run that goes on: what it begins with may be the best.
void Run::save_missing_best() {
  if (!best_is_missing(run_dir_, notes_.evaluations))
    return;
  const std::uint64_t step = notes_.evaluations.best->step;
  if (step != steps_) {
    warn(fmt::format("{}: the model of the lowest loss, after {} steps, is not in it",
                     run_dir_.best(), step));
    return;
  }
  open_folder();
  saves_.save_best();
}

void Run::make_steps() {
  const StopSignals signals;
  signals_ = &signals;
  const auto stopped = [&] { return signals.received() != 0; };
  if (const auto ms = training_.measure(options_.seed, stopped))
    say(fmt::format("Time:  about {}.\n", format_duration(std::max(1.0, estimated_seconds(*ms)))));
  std::optional<xgrad::Profile> profile;
  const std::uint64_t profile_at = std::min<std::uint64_t>(
      first_ + profile_from, std::max<std::uint64_t>(recipe_.max_iters, 1) - 1);
  save_missing_best();
  if (evaluation_pending() && !stopped()) {  // it was interrupted
    open_folder();
    conclude(run_dir_.metrics().last(steps_ - 1));
  }
  while (!ended() && !stopped()) {
    if (options_.profile && steps_ == profile_at)
      profile.emplace();
    const StepRecord record = training_.make_step(steps_);
    ++steps_;
    open_folder();
    if (profile && (steps_ == profile_at + profiled_steps || steps_ == recipe_.max_iters)) {
      show(*profile);
      profile.reset();
    }
    progress_.step(record);
    conclude(record);
  }
  signal_ = ended() ? 0 : signals.received();
  if (signal_ == 0 || run_dir_.is_open()) {
    open_folder();
    saves_.save(steps_, ended());
    run_dir_.unlock();  // what follows may be ended by a signal
  }
}

/// What a signal says to do.
int Run::stopped() {
  if (signal_ != SIGPIPE && steps_ == first_ && !run_dir_.is_open())
    progress_.line(fmt::format("Stopped by {} before the first step; nothing was written.",
                               signal_name(signal_)));
  else if (signal_ != SIGPIPE)
    progress_.line(fmt::format("Stopped by {} after {} steps; the model is in {}.  To go on:\n  {}",
                               signal_name(signal_), format_count(steps_), run_dir_.checkpoint(),
                               resume_command(options_, run_dir_.path())));
  return 128 + signal_;
}

int Run::completed() {
  if (steps_ < recipe_.max_iters)
    progress_.line(fmt::format(
        "No improvement in {} evaluations: the run ends after {} steps.  The model of the lowest "
        "loss, {:.4f} after {} steps, is {}.",
        recipe_.patience, format_count(steps_), notes_.evaluations.best->loss,
        format_count(notes_.evaluations.best->step),
        best_is_missing(run_dir_, notes_.evaluations) ? "lost" : "in " + run_dir_.best()));
  if (!val_loss_)  // there was no last step
    val_loss_ =
        validation_loss(training_.model(), source_.ids.validation, [](double) { return false; });
  print_validation_loss(*val_loss_, source_, recipe_.block_size);
  say(fmt::format("The run is in {}; its steps took {}. What the model writes:\n", run_dir_.path(),
                  format_duration(run_dir_.metrics().milliseconds() / 1000)));
  SampleOptions sample;
  sample.seed = options_.seed;
  print_sample(training_.model(), source_.characters, sample);
  return 0;
}

/// 1 if something is lost, and says what.
int Run::exit_code(int code) {
  if (saves_.failed()) {
    progress_.warn(
        saves_.saved()
            ? fmt::format("what could not be saved is lost; the last checkpoint, after {} of {} "
                          "steps, is {}",
                          *saves_.saved(), steps_, run_dir_.checkpoint())
            : "the model could not be saved and is lost");
    code = 1;
  }
  if (const std::size_t rows = run_dir_.is_open() ? run_dir_.metrics().unwritten() : 0) {
    progress_.warn(fmt::format("{}; the last {} rows are lost", run_dir_.metrics().error(), rows));
    code = 1;
  }
  return code;
}

int Run::go() {
  describe();
  try {
    make_steps();
  } catch (const NotFinite& error) {
    throw NotFinite(fmt::format(
        "{}\n{}", error.what(),
        saves_.saved() ? fmt::format("The last good checkpoint, after {} steps, is {}.",
                                     format_count(*saves_.saved()), run_dir_.checkpoint())
                       : "There is no checkpoint yet."));
  }
  return exit_code(signal_ != 0 ? stopped() : completed());
}

int begin(TrainOptions options) {
  RunDir run_dir = RunDir::fresh(options.out, options.resume.has_value());
  std::optional<xgrad::io::Checkpoint> from;
  std::optional<xgrad::data::Characters> characters;
  if (!options.init_from.empty()) {
    from = xgrad::io::load_checkpoint(options.init_from);
    const Notes notes = read_notes(*from);
    check_finite(from->model, from->path);
    options = with_sizes_of(*from, notes, std::move(options));
    characters = notes.characters;
  }
  if (const auto wrong = contradiction(options.recipe))
    throw command_line::UsageError("char_transformer train: " + *wrong);
  check_memory(options);
  const Source source = open_source(options.data, options.recipe.block_size, characters);
  check_memory(options, source.characters.size());
  // From here on, the draws are those of the reference: the weights, then batch after batch.
  xgrad::manual_seed(options.seed);
  Training training(options.recipe, source);
  if (from) {
    xgrad::io::load_state(training.model(), from->model, from->path);
    say(fmt::format("From:  {}, after {} steps.\n", from->path, format_count(from->step)));
    from.reset();
  }
  return Run(options, source, training, run_dir).go();
}

/// Whether there is nothing left to do; then says so.
bool has_ended(const ResumePoint& point, const RunDir& run_dir) {
  const Recipe& recipe = point.options.recipe;
  const std::uint64_t steps = point.checkpoint.step;
  const Evaluations& evaluations = point.notes.evaluations;
  const bool best_is_due = best_is_missing(run_dir, evaluations) && evaluations.best->step == steps;
  const bool ended = finished(recipe, steps, evaluations) && !best_is_due;
  if (ended)
    say(fmt::format("{}: the run is finished, after {} steps.  A larger {} makes it longer.\n",
                    point.checkpoint.path, format_count(steps),
                    steps < recipe.max_iters ? "--patience" : "--max-iters"));
  return ended;
}

int go_on(const std::string& checkpoint, const TrainOptions& given) {
  ResumePoint point = read_resume_point(checkpoint, given);
  RunDir run_dir = RunDir::resumed(point.folder);
  if (has_ended(point, run_dir))
    return 0;
  run_dir.lock();
  // Until now another process may have gone on with it.
  point = read_resume_point(checkpoint, given);
  if (has_ended(point, run_dir))
    return 0;
  const TrainOptions& options = point.options;
  check_memory(options);
  const Source source = open_text(given.data, checkpoint, point.notes, options.recipe.block_size);
  if (!point.notes.text.empty() && checksum(source.ids) != point.notes.text)
    throw xgrad::FileError(
        fmt::format("{}: another text than the run in {} is trained on; --data FILE names it",
                    source.name, point.folder));
  xgrad::manual_seed(options.seed);
  Training training(options.recipe, source);
  xgrad::io::restore(point.checkpoint, training.model(), training.optimizer());
  const std::uint64_t steps = point.checkpoint.step;
  say(fmt::format("From:  {}, after {} steps{}.\n", checkpoint, format_count(steps),
                  given.init_from.empty() ? "" : "; --init-from is for a new run, and not used"));
  point.checkpoint = {};
  return Run(options, source, training, run_dir, steps, point.notes.evaluations).go();
}

}  // namespace

int train(const TrainOptions& options) {
  if (options.resume)
    if (const std::optional<std::string> checkpoint = checkpoint_to_resume(options))
      return go_on(*checkpoint, options);
  return begin(options);
}

}  // namespace char_transformer
