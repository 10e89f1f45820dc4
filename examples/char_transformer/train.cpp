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

#include "evaluate.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "resume.hpp"
#include "sample.hpp"
#include "saves.hpp"
#include "start.hpp"
#include "stop.hpp"
#include "training.hpp"

namespace char_transformer {
namespace {

/// The first steps are slower than all that follow.
constexpr std::size_t profile_from = 10, profiled_steps = 10;

class Run {
 public:
  /// A new run, or one that is resumed after so many steps.  Of several ranks, the first writes.
  Run(Start& start, Training& training)
      : options_(start.options),
        recipe_(options_.recipe),
        source_(start.source),
        training_(training),
        ranks_(training.ranks()),
        writes_(ranks_.rank() == 0),
        run_dir_(*start.run_dir),
        first_(start.resumed.value_or(0)),
        steps_(first_),
        notes_{.config = to_json(options_, source_.characters.size()),
               .characters = source_.characters,
               .text = checksum(source_.ids),
               .evaluations = start.evaluations},
        progress_(first_, recipe_.max_iters, training.tokens_per_step()),
        saves_(
            run_dir_, options_.keep.value_or(0), start.resumed,
            [this](const std::string& path) { write(path); },
            [this](const std::string& line) { progress_.warn(line); }) {}

  /// To its end; the exit code.
  int go();

 private:
  void describe() const;
  std::string workers() const;
  double estimated_seconds(double ms_per_token) const;
  bool evaluation_pending() const {
    return evaluation_due(recipe_, steps_) && notes_.evaluations.last != steps_;
  }
  bool stopped();
  bool ended() const { return finished(recipe_, steps_, notes_.evaluations); }
  void save_missing_best();
  void write_report();
  void make_steps();
  void show(const xgrad::Profile& profile);
  void conclude(std::optional<StepRecord> record);
  std::optional<double> evaluate();
  void open_folder();
  void log(const StepRecord& record);
  void write(const std::string& path);
  int interrupted();
  int completed();
  int exit_code(int code);

  const TrainOptions& options_;
  const Recipe& recipe_;
  const Source& source_;
  Training& training_;
  const Ranks& ranks_;
  const bool writes_;
  RunDir& run_dir_;
  std::uint64_t first_;  ///< steps made before
  std::uint64_t steps_;  ///< steps made
  Notes notes_;
  Progress progress_;
  Saves saves_;
  std::optional<double> val_loss_;  ///< over the whole validation split, in the end
  const StopSignals* signals_ = nullptr;
  int signal_ = 0;  ///< that any rank has received
  bool folder_open_ = false;
};

/// "2 threads", "4 ranks of 1 thread".
std::string Run::workers() const {
  const std::size_t n = xgrad::num_threads();
  const std::string threads = fmt::format("{} thread{}", n, n == 1 ? "" : "s");
  return ranks_.size() == 1 ? threads : fmt::format("{} ranks of {}", ranks_.size(), threads);
}

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
  say(fmt::format("Steps: {} of {} characters ({}{} blocks of {}), on {} ({}), seed {}.\n",
                  format_count(recipe_.max_iters), format_count(training_.tokens_per_step()),
                  n > 1 ? fmt::format("{} batches of ", n) : "", recipe_.batch_size,
                  recipe_.block_size, workers(), xgrad::simd_name(), options_.seed));
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
  // A rank computes so many of the shards, or all of them if it draws random numbers.
  const std::size_t shards = std::min(recipe_.shards, recipe_.batch_size), n = ranks_.size();
  const double share =
      recipe_.dropout > 0 ? 1
                          : static_cast<double>((shards + n - 1) / n) / static_cast<double>(shards);
  return ms_per_token * tokens * (n == 1 ? 1 : share) / 1000;
}

/// Whether to end early: on all ranks, if one was asked to.
bool Run::stopped() {
  signal_ = signals_->received();
  if (ranks_.size() > 1)
    signal_ = static_cast<int>(std::ranges::max(gather(ranks_.world(), signal_)));
  return signal_ != 0;
}

void Run::write(const std::string& path) {
  run_dir_.check_lock();
  run_dir_.metrics().sync();  // no checkpoint without its rows, not even after a power cut
  xgrad::io::save_checkpoint(path, training_.model(), training_.optimizer(),
                             {.step = steps_, .user = to_json(notes_)});
}

/// A folder is made when there is something to put in it.
void Run::open_folder() {
  if (std::exchange(folder_open_, true))
    return;
  together(ranks_.world(), [this] {
    if (writes_) {
      run_dir_.open(format_folder_notes(options_, source_.characters.size()), first_);
      write_environment(run_dir_.path(), ranks_.size());
    }
  });
  progress_.line(fmt::format("Run:   {}", run_dir_.path()));
}

void Run::log(const StepRecord& record) {
  if (!writes_)
    return;
  Metrics& metrics = run_dir_.metrics();
  const bool all_were_written = metrics.unwritten() == 0;
  if (!metrics.log(record) && all_were_written)
    progress_.warn(metrics.error() + "; training goes on, and its rows are kept until it works");
}

/// The whole validation split after the last step, an estimate after every eval_interval steps.
std::optional<double> Run::evaluate() {
  const auto stop = [this](double) { return stopped(); };
  if (steps_ == recipe_.max_iters)
    return validation_loss(ranks_, training_.model(), source_.ids.validation, stop);
  return estimate_loss(ranks_, training_.model(), source_.ids.validation, recipe_.batch_size,
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
  if (lowest && writes_)  // before the checkpoint, which says which is the best
    saves_.save_best();
  const std::size_t interval = options_.save_interval.value_or(recipe_.eval_interval);
  const bool save_point = steps_ % interval == 0 && !evaluation_pending();
  if (writes_ && !ended() && (save_point || saves_.retry_due()))
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

void Run::write_report() {
  if (const std::string why = report_of(run_dir_.path(), options_); !why.empty())
    progress_.warn(fmt::format("no report: {}", why));
}

void Run::make_steps() {
  const StopSignals signals;
  signals_ = &signals;
  if (const auto ms = training_.measure(options_.seed, [&] { return signals.received() != 0; }))
    say(fmt::format("Time:  about {}.\n", format_duration(std::max(1.0, estimated_seconds(*ms)))));
  std::optional<xgrad::Profile> profile;
  const std::uint64_t profile_at = std::min<std::uint64_t>(
      first_ + profile_from, std::max<std::uint64_t>(recipe_.max_iters, 1) - 1);
  save_missing_best();
  if (evaluation_pending() && !stopped()) {  // it was interrupted
    open_folder();
    conclude(writes_ ? run_dir_.metrics().last(steps_ - 1) : std::nullopt);
  }
  while (!ended() && !stopped()) {
    if (options_.profile && steps_ == profile_at)
      profile.emplace();
    const StepRecord record = training_.make_step(steps_);
    ++steps_;
    open_folder();
    if (profile && (steps_ == profile_at + profiled_steps || steps_ == recipe_.max_iters)) {
      if (writes_)
        show(*profile);
      profile.reset();
    }
    progress_.step(record);
    conclude(record);
  }
  if (ended())
    signal_ = 0;
  if (signal_ == 0 || folder_open_) {
    open_folder();
    if (writes_) {
      saves_.save(steps_, ended());
      run_dir_.unlock();  // what follows may be ended by a signal
      write_report();
    }
  }
}

/// What a signal says to do.
int Run::interrupted() {
  if (signal_ != SIGPIPE && steps_ == first_ && !folder_open_)
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
    val_loss_ = validation_loss(ranks_, training_.model(), source_.ids.validation,
                                [](double) { return false; });
  if (!writes_)
    return 0;
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
  return exit_code(signal_ != 0 ? interrupted() : completed());
}

}  // namespace

int train(const TrainOptions& options, const World& world) {
  std::optional<Start> start = prepare(options, *world);
  if (!start)
    return 0;
  const Recipe& recipe = start->options.recipe;
  // From here on, the draws are those of the reference: the weights, then batch after batch.
  xgrad::manual_seed(start->options.seed);
  Training training(recipe, start->source, world);
  if (start->from) {
    if (start->resumed)
      xgrad::io::restore(*start->from, training.model(), training.optimizer());
    else
      xgrad::io::load_state(training.model(), start->from->model, start->from->path);
    start->from.reset();
  }
  const int code = Run(*start, training).go();
  xgrad::parallel::end_together();
  return code;
}

}  // namespace char_transformer
