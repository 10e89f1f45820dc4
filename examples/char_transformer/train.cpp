// The command `train`: a run from its beginning, or from where it was left.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/profile.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/batches.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/chrome_trace.hpp>

#include "describe.hpp"
#include "evaluate.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "prompt.hpp"
#include "report.hpp"
#include "sample.hpp"
#include "start.hpp"
#include "stop.hpp"
#include "trained_model.hpp"
#include "training.hpp"

namespace char_transformer {
namespace {

/// The first steps are slower than all that follow.
constexpr std::size_t profile_from = 10, profiled_steps = 10;
constexpr auto retry_after = std::chrono::seconds(10);
constexpr std::size_t sampled_characters = 64;

/// A run while it makes its steps.  Of several ranks, the first writes.
class Run {
 public:
  Run(Start& start, Training& training, xgrad::text::Ids prompt)
      : start_(start),
        options_(start.options),
        recipe_(options_.recipe),
        source_(start.source),
        training_(training),
        ranks_(training.ranks()),
        writes_(ranks_.rank() == 0),
        prompt_(std::move(prompt)),
        blocks_(final_blocks(options_, source_.ids.validation)),
        run_dir_(*start.run_dir),
        steps_(start.steps()),
        evaluations_(start.notes.evaluations),
        progress_(steps_, recipe_.max_iters, training.tokens_per_step(),
                  steps_of_validation(start, training)),
        saved_(start.resumed) {}

  int go();

 private:
  void make_steps();
  void conclude(std::string row);
  int interrupted();
  int completed();
  int exit_code(int code);

  bool evaluation_pending() const {
    return evaluation_due(recipe_, steps_) && evaluations_.last != steps_;
  }
  bool ended() const { return finished(recipe_, steps_, evaluations_); }
  bool stopped();
  std::optional<double> measured(const std::function<std::optional<double>(const Stop&)>& loss,
                                 bool may_stop = true);
  std::optional<double> estimate(std::size_t batches, bool may_stop = true);
  std::optional<double> whole();
  std::string blocks() const;
  void check_model();
  void sample();

  void open_folder();
  bool keep_folder();
  void add_row(Rows& rows, const std::string& row);
  void write(const char* name);
  void attempt(const std::function<void()>& save, bool& failed, const char* then);
  void save(bool kept);
  void write_report();
  std::string after(std::uint64_t steps) const { return format_count(steps, "step", "steps"); }

  Start& start_;
  const TrainOptions& options_;
  const Recipe& recipe_;
  const Source& source_;
  Training& training_;
  const Ranks& ranks_;
  const bool writes_;
  const xgrad::text::Ids prompt_;  ///< of the samples
  const std::size_t blocks_;       ///< of the last validation
  RunDir& run_dir_;
  std::uint64_t steps_;  ///< steps made
  Evaluations evaluations_;
  Progress progress_;
  double milliseconds_ = 0;             ///< of the steps
  std::optional<double> final_loss_;    ///< over blocks side by side, in the end
  std::optional<StopSignals> signals_;  ///< while steps are made
  int signal_ = 0;                      ///< that any rank has received
  bool folder_open_ = false;
  std::optional<std::uint64_t> saved_;         ///< the steps of the checkpoint that is there
  bool failed_ = false, best_failed_ = false;  ///< the last saves of the last and the best
  std::chrono::steady_clock::time_point tried_ = {};
};

int Run::go() {
  signals_.emplace();
  describe(
      start_, training_, [this] { return signals_->received() != 0; },
      [](const std::string& label, const std::string& text) { tell(label, text); });
  try {
    make_steps();
    if (folder_open_)
      check_model();
  } catch (const NotFinite& error) {
    if (folder_open_)
      write_report();  // it shows how the loss went there
    throw NotFinite(fmt::format("{}\n{}", error.what(),
                                saved_ ? fmt::format("The last good checkpoint, after {}, is {}.",
                                                     after(*saved_), run_dir_.checkpoint())
                                       : "There is no checkpoint yet."));
  }
  if (ended())
    signal_ = 0;
  if (signal_ == 0 || folder_open_) {
    open_folder();
    keep_folder();
    if (writes_)
      save(ended());
    run_dir_.unlock();
    write_report();
  }
  signals_.reset();  // what follows may be ended by one
  return exit_code(signal_ != 0 ? interrupted() : completed());
}

void Run::make_steps() {
  std::optional<xgrad::Profile> profile;
  const std::uint64_t profile_at = std::min<std::uint64_t>(
      steps_ + profile_from, std::max<std::uint64_t>(recipe_.max_iters, 1) - 1);
  std::string evaluated_before;              // the first step's row has the loss before it
  if (evaluation_pending() && !stopped()) {  // it was interrupted
    open_folder();
    conclude(writes_ ? run_dir_.metrics().cut() : "");
  }
  if (steps_ == 0 && !ended() && !stopped())
    if (const auto loss = estimate(recipe_.eval_iters)) {
      progress_.validated(0, *loss, false);
      evaluated_before = fmt::format(R"(, "val_loss_before": {:.9g}, "val_loss_over": "{}")", *loss,
                                     format_batches(recipe_.eval_iters));
    }
  std::string changes = start_.changes;  // of the flags; said in the row of the next step
  while (!ended() && !stopped()) {
    if (options_.profile && steps_ == profile_at)
      profile.emplace();
    const StepRecord record = training_.make_step(steps_);
    ++steps_;
    milliseconds_ += record.ms;
    open_folder();
    if (profile && (steps_ == profile_at + profiled_steps || steps_ == recipe_.max_iters)) {
      progress_.clear();
      say(profile->table() + "\n");
      if (writes_)
        run_dir_.save("trace.json", [&](const std::string& path) {
          xgrad::io::write_chrome_trace(path, profile->events());
        });
      profile.reset();
    }
    progress_.step(record);
    const std::string row = fmt::format(
        R"({{"step": {}, "loss": {:.9g}, "lr": {:.9g}, "grad_norm": {:.9g}, "ms": {:.3f}{}{}}})",
        record.step, record.loss, record.lr, record.grad_norm, record.ms,
        std::exchange(evaluated_before, ""),
        changes.empty() ? "" : fmt::format(R"(, "changes": "{}")", std::exchange(changes, "")));
    conclude(row);
  }
}

/// What follows a step's update: its evaluation, its row, and saving.
void Run::conclude(std::string row) {
  const auto append = [&](const std::string& losses) {
    if (!row.empty())
      row.insert(row.size() - 1, losses);
  };
  bool lowest = false;
  if (evaluation_pending()) {
    if (const std::optional<double> loss = estimate(recipe_.eval_iters)) {
      Evaluations evaluations = evaluations_;
      lowest = evaluations.add(steps_, *loss);
      progress_.validated(steps_, *loss, lowest);
      const bool last = finished(recipe_, steps_, evaluations);
      if (last)
        final_loss_ = whole();
      if (last && !final_loss_) {  // it was interrupted; both are made again
        lowest = false;
      } else {
        evaluations_ = evaluations;
        append(fmt::format(R"(, "val_loss": {:.9g})", *loss));
        if (row.find("val_loss_over") == row.npos)
          append(fmt::format(R"(, "val_loss_over": "{}")", format_batches(recipe_.eval_iters)));
        if (final_loss_)
          append(fmt::format(R"(, "final_val_loss": {:.9g}, "final_val_loss_over": "{}")",
                             *final_loss_, blocks()));
      }
    }
  }
  const bool moved = keep_folder();
  if (writes_ && !row.empty())
    add_row(run_dir_.metrics(), row);
  sample();
  const std::size_t interval = options_.save_interval.value_or(recipe_.eval_interval);
  const bool save_point = steps_ % interval == 0 && !evaluation_pending();
  if (lowest || save_point)
    check_model();
  if (lowest && writes_)  // before the checkpoint, which says which is the best
    attempt([this] { write(best_name); }, best_failed_, "and the next lower loss is saved again");
  const bool retry = failed_ && std::chrono::steady_clock::now() - tried_ > retry_after;
  const bool other =
      (moved || retry) && not_finite(xgrad::nn::state_dict(training_.model())).empty();
  if (writes_ && !ended() && (save_point || other))
    save(save_point);
}

/// Whether to end early: on all ranks, if one was asked to.
bool Run::stopped() {
  if (signals_)
    signal_ = ranks_.any_signal(signals_->received());
  return signal_ != 0;
}

/// A loss on the text that it is not trained on; no value if stopped.  Throws NotFinite, on all
/// ranks, for one that is not finite.
std::optional<double> Run::measured(const std::function<std::optional<double>(const Stop&)>& loss,
                                    bool may_stop) {
  const auto measure = [&] {
    return loss([&](double done) {
      if (may_stop)
        progress_.evaluating(done);
      return may_stop && stopped();
    });
  };
  const std::optional<double> value = measure();
  if (value && !std::isfinite(*value))
    throw NotFinite(fmt::format("{} the validation loss is {}\n{}",
                                steps_ == 0 ? "before the first step"
                                            : fmt::format("step {}: after its update", steps_ - 1),
                                *value, first_anomaly([&] { measure(); })));
  return value;
}

/// Over the same random batches each time, so that all that a run has compare.
std::optional<double> Run::estimate(std::size_t batches, bool may_stop) {
  return measured(
      [&](const Stop& stop) {
        return estimate_loss(ranks_, training_.model(), source_.ids.validation, recipe_.batch_size,
                             batches, options_.seed, stop);
      },
      may_stop);
}

/// That of the end, over as many blocks as --val-blocks says.
std::optional<double> Run::whole() {
  progress_.line("validation over " + blocks());
  return measured([&](const Stop& stop) {
    return block_loss(ranks_, training_.model(), source_.ids.validation, blocks_, stop);
  });
}

std::string Run::blocks() const {
  return format_blocks(blocks_,
                       xgrad::text::block_count(source_.ids.validation, recipe_.block_size));
}

/// Throws NotFinite if a checkpoint would hold a weight that is not finite, or unless the model was
/// just measured, give a loss that is not.
void Run::check_model() {
  if (const std::string wrong = not_finite(xgrad::nn::state_dict(training_.model()));
      !wrong.empty())
    throw NotFinite(fmt::format("step {}: after its update {}", steps_ - 1, wrong));
  if (evaluations_.last != steps_)
    estimate(1, false);
}

/// Writes down what the model writes by now, where that is due.  It comes from a generator of its
/// own that begins with the run's seed, so nothing of the training depends on it.
void Run::sample() {
  const bool due = options_.sample_interval
                       ? *options_.sample_interval > 0 && steps_ % *options_.sample_interval == 0
                       : evaluation_due(recipe_, steps_);
  if (!writes_ || evaluation_pending() || !due)
    return;
  auto ids = xgrad::empty_array<std::int64_t>(xgrad::Shape{1, prompt_.size()});
  prompt_.copy(0, prompt_.size(), ids.data());
  xgrad::Generator generator(options_.seed);
  const xgrad::Indices written = training_.model().generate(
      xgrad::Indices(std::move(ids)), sampled_characters, generator, {.temperature = 0.8});
  const std::string text = source_.characters.decode(
      xgrad::text::Ids(std::span(written.data(), static_cast<std::size_t>(written.numel()))));
  add_row(run_dir_.samples(),
          xgrad::io::format_json(xgrad::io::JsonObject{{"step", steps_}, {"text", text}}));
  if (steps_ < recipe_.max_iters)  // after the last step comes a longer one
    progress_.sampled(steps_, text);
}

/// A folder is made when there is something to put in it.
void Run::open_folder() {
  if (std::exchange(folder_open_, true))
    return;
  std::string lost;
  ranks_.together([&] {
    if (!writes_)
      return;
    // The row of a step whose evaluation is to be made again is written again.
    const std::uint64_t rows = start_.steps() - (evaluation_pending() && steps_ == start_.steps());
    lost = run_dir_.open(format_folder_notes(options_, source_.characters.size(),
                                             start_.folder.config, start_.steps(), start_.changes),
                         format_environment(ranks_.size()), start_.steps(), rows);
    milliseconds_ += run_dir_.metrics().milliseconds();
  });
  tell("Run", run_dir_.path());
  if (!lost.empty())
    tell("Note", fmt::format("going on after {}: {}.", after(start_.steps()), lost));
}

/// Sees to it that what is written is where the folder is now; whether it was moved.
bool Run::keep_folder() {
  const std::string moved = writes_ && folder_open_ ? run_dir_.keep() : "";
  if (!moved.empty())
    progress_.warn(moved);
  return !moved.empty();
}

/// Adds a row to a file, and says it once if that fails.
void Run::add_row(Rows& rows, const std::string& row) {
  const bool all_were_written = rows.unwritten() == 0;
  if (!rows.add(row) && all_were_written)
    progress_.warn(rows.error() + "; training goes on, and its rows are kept until it works");
}

void Run::write(const char* name) {
  // No checkpoint without its rows, not even after a power cut.
  run_dir_.metrics().sync();
  run_dir_.samples().sync();
  start_.notes.evaluations = evaluations_;
  run_dir_.save(name, [this](const std::string& path) {
    xgrad::io::save_checkpoint(path, training_.model(), training_.optimizer(),
                               {.step = steps_, .user = to_json(start_.notes)});
  });
}

/// A save that fails does not end the run: it is said at once, and tried again.
void Run::attempt(const std::function<void()>& save, bool& failed, const char* then) {
  try {
    save();
    failed = false;
  } catch (const std::exception& error) {
    progress_.warn(fmt::format("{}; training goes on, {}", error.what(), then));
    failed = true;
  }
}

void Run::save(bool kept) {
  const bool failed_before = failed_;
  const char* const then = "and saving is tried again";
  tried_ = std::chrono::steady_clock::now();
  attempt([this] { write(checkpoint_name); }, failed_, then);
  if (failed_)
    return;
  saved_ = steps_;
  if (failed_before)
    progress_.warn(fmt::format("{}: saved again, after {}", run_dir_.checkpoint(), after(steps_)));
  if (const std::size_t count = options_.keep.value_or(0); kept && count > 0) {
    bool failed = false;  // what was to be kept of these steps is lost, and the run is not
    attempt([&] { run_dir_.keep_checkpoint(steps_, count); }, failed, then);
  }
  if (is_verbose())
    progress_.line(fmt::format("after {}: saved in {}", after(steps_), run_dir_.checkpoint()));
}

/// Of steps that were made.
void Run::write_report() {
  if (!writes_ || steps_ == 0)
    return;
  if (const std::string why = report_of(run_dir_.path(), options_); !why.empty())
    progress_.warn(fmt::format("no report: {}", why));
}

/// What a signal says to do.
int Run::interrupted() {
  const std::string name = signal_name(signal_);
  if (signal_ == SIGPIPE)
    return 128 + signal_;
  if (!folder_open_)
    progress_.line(fmt::format("Stopped by {} before the first step; nothing was written.", name));
  else if (failed_)  // exit_code() says what is lost
    progress_.line(
        fmt::format("Stopped by {} after {}; the model could not be saved.", name, after(steps_)));
  else
    progress_.line(fmt::format("Stopped by {} after {}; the model is in {}.  To go on:\n  {}", name,
                               after(steps_), run_dir_.checkpoint(),
                               resume_command(options_, run_dir_.path())));
  return 128 + signal_;
}

int Run::completed() {
  if (steps_ < recipe_.max_iters)
    progress_.line(fmt::format(
        "No improvement in {}: the run ends after {}.  The model of the lowest loss, {:.4f} after "
        "{}, is in {}.",
        xgrad::counted(recipe_.patience, "evaluation", "evaluations"), after(steps_),
        evaluations_.best->loss, after(evaluations_.best->step), run_dir_.best()));
  if (!final_loss_)  // there was no last step
    final_loss_ = whole();
  if (!writes_)
    return 0;
  const bool all = blocks_ == xgrad::text::block_count(source_.ids.validation, recipe_.block_size);
  print_loss("val_loss", *final_loss_,
             fmt::format("{} of {}{}", blocks(), source_.validation_name,
                         all ? "" : "; --val-blocks 0 takes all"),
             source_.entropy(blocks_ * recipe_.block_size));
  tell(fmt::format("The run is in {}; its steps took {}. What the model writes:\n", run_dir_.path(),
                   format_duration(milliseconds_ / 1000)));
  SampleOptions sample;
  sample.seed = options_.seed;
  print_sample(training_.model(), source_.characters, sample);
  return 0;
}

/// 1 if something is lost, and says what.
int Run::exit_code(int code) {
  if (failed_ || best_failed_) {
    progress_.warn(
        saved_ ? fmt::format(
                     "what could not be saved is lost; the last checkpoint, after {} of {}, is {}",
                     *saved_, after(steps_), run_dir_.checkpoint())
               : "the model could not be saved and is lost");
    code = 1;
  }
  if (!run_dir_.is_open())
    return code;
  for (const Rows* const file : {&run_dir_.metrics(), &run_dir_.samples()})
    if (file->unwritten() > 0) {
      progress_.warn(fmt::format(
          "{}; the last {} lost", file->error(),
          file->unwritten() == 1 ? "row is" : fmt::format("{} rows are", file->unwritten())));
      code = 1;
    }
  return code;
}

}  // namespace

int train(const TrainOptions& given, Ranks& ranks) {
  std::optional<Start> start = prepare(given, ranks);
  if (!start)
    return 0;
  const TrainOptions& options = start->options;
  if (options.overfit_one_batch && !options.dry_run)
    return overfit_one_batch(*start, ranks);
  const xgrad::text::Ids prompt =
      encode_prompt("--sample-prompt", options.sample_prompt, start->source.characters);
  // From here on, the draws are those of the reference: the weights, then batch after batch.
  xgrad::manual_seed(options.seed);
  Training training(*start, ranks);
  if (!options.dry_run)
    return Run(*start, training, prompt).go();
  const StopSignals signals;
  describe(
      *start, training, [&] { return signals.received() != 0; },
      [](const std::string& label, const std::string& text) {
        say(labelled(label, text));  // here it is the result
      });
  return signals.received() == 0 ? 0 : 128 + signals.received();
}

}  // namespace char_transformer
