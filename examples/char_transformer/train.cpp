#include "train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/profile.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/chrome_trace.hpp>

#include "describe.hpp"
#include "evaluate.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "prompt.hpp"
#include "report.hpp"
#include "resume.hpp"
#include "run_dir.hpp"
#include "sample.hpp"
#include "start.hpp"
#include "stop.hpp"
#include "training.hpp"
#include "validation.hpp"

namespace char_transformer {
namespace {

/// The first steps are slower than all that follow.
constexpr std::size_t profile_from = 10, profiled_steps = 10;

constexpr auto retry_after = std::chrono::seconds(10);
constexpr std::size_t sampled_characters = 64;

/// ValueError for a prompt that is too long or has characters that the model does not know.
xgrad::text::Ids sample_prompt(const TrainOptions& options,
                               const xgrad::text::Characters& characters) {
  constexpr std::size_t longest = 1000;  // a row has to be shorter than what Rows reads
  xgrad::text::Ids ids = encode_prompt("--sample-prompt", options.sample_prompt, characters);
  if (ids.size() > longest)
    throw xgrad::ValueError(
        fmt::format("--sample-prompt: {} characters are more than {}", ids.size(), longest));
  return ids;
}

class Run {
 public:
  /// A new run, or one that goes on.  Of several ranks, the first writes.
  Run(Start& start, Training& training)
      : options_(start.options),
        recipe_(options_.recipe),
        source_(start.source),
        training_(training),
        ranks_(training.ranks()),
        writes_(ranks_.rank() == 0),
        start_(start),
        prompt_(sample_prompt(options_, source_.characters)),
        run_dir_(*start.run_dir),
        first_(start.resumed.value_or(0)),
        steps_(first_),
        notes_(start.notes),
        changes_(start.changes),
        progress_(first_, recipe_.max_iters, training.tokens_per_step(),
                  steps_of_validation(start, training)),
        validation_(options_, source_, training_, progress_, [this] { return stopped(); }),
        saved_(start.resumed) {}

  /// To its end; the exit code.
  int go();

 private:
  using Clock = std::chrono::steady_clock;

  bool evaluation_pending() const {
    return evaluation_due(recipe_, steps_) && notes_.evaluations.last != steps_;
  }
  bool ended() const { return finished(recipe_, steps_, notes_.evaluations); }
  bool stopped();
  void check_model() const { validation_.check_model(steps_, notes_.evaluations.last == steps_); }
  void make_steps();
  void step_until_end();
  void conclude(std::optional<StepRecord> record);
  void sample();
  void show(const xgrad::Profile& profile);
  void open_folder();
  bool keep_folder();
  void add_row(Rows& rows, const std::string& row, std::uint64_t step);
  void write(const std::string& path);
  bool attempt(const std::function<void()>& save, bool& failed, const char* then);
  void save(bool kept);
  void save_best();
  void save_missing_best();
  void write_report();
  int interrupted();
  int completed();
  int exit_code(int code);

  const TrainOptions& options_;
  const Recipe& recipe_;
  const Source& source_;
  Training& training_;
  const Ranks& ranks_;
  const bool writes_;
  Start& start_;
  const xgrad::text::Ids prompt_;  ///< of the samples
  RunDir& run_dir_;
  std::uint64_t first_;  ///< steps made before
  std::uint64_t steps_;  ///< steps made
  Notes notes_;
  std::string changes_;  ///< of the flags; said in the row of the next step
  Progress progress_;
  const Validation validation_;
  double milliseconds_ = 0;                ///< of the steps
  std::optional<double> val_loss_before_;  ///< estimated before the first step
  std::optional<double> final_loss_;       ///< over blocks side by side, in the end
  const StopSignals* signals_ = nullptr;   ///< while steps are made
  int signal_ = 0;                         ///< that any rank has received
  bool folder_open_ = false;
  std::optional<std::uint64_t> saved_;         ///< the steps of the checkpoint that is there
  bool failed_ = false, best_failed_ = false;  ///< the last saves of the last and the best
  Clock::time_point tried_ = {};
};

/// Whether to end early: on all ranks, if one was asked to.
bool Run::stopped() {
  if (signals_ != nullptr)
    signal_ = ranks_.any_signal(signals_->received());
  return signal_ != 0;
}

int Run::go() {
  try {
    make_steps();
  } catch (const NotFinite& error) {
    throw NotFinite(fmt::format(
        "{}\n{}", error.what(),
        saved_ ? fmt::format("The last good checkpoint, after {}, is {}.",
                             format_count(*saved_, "step", "steps"), run_dir_.checkpoint())
               : "There is no checkpoint yet."));
  }
  return exit_code(signal_ != 0 ? interrupted() : completed());
}

void Run::make_steps() {
  const StopSignals signals;
  signals_ = &signals;
  describe(start_, training_, signals,
           [](const std::string& label, const std::string& text) { tell(label, text); });
  try {
    step_until_end();
    if (folder_open_)
      check_model();
  } catch (const NotFinite&) {
    if (writes_ && folder_open_)
      write_report();  // it shows how the loss went there
    throw;
  }
  signals_ = nullptr;
  if (ended())
    signal_ = 0;
  if (signal_ == 0 || folder_open_) {
    open_folder();
    keep_folder();
    if (writes_) {
      save(ended());
      run_dir_.unlock();  // what follows may be ended by a signal
      write_report();
    }
  }
}

void Run::step_until_end() {
  std::optional<xgrad::Profile> profile;
  const std::uint64_t profile_at = std::min<std::uint64_t>(
      first_ + profile_from, std::max<std::uint64_t>(recipe_.max_iters, 1) - 1);
  save_missing_best();
  if (evaluation_pending() && !stopped()) {  // it was interrupted
    open_folder();
    std::optional<StepRecord> last;
    if (writes_)
      last = read_row(run_dir_.metrics().last());
    if (last && last->step == steps_ - 1)
      milliseconds_ -= last->ms;  // its row is written again
    else
      last.reset();
    conclude(last);
  }
  if (steps_ == 0 && !ended() && !stopped() && (val_loss_before_ = validation_.estimate(steps_)))
    progress_.validated(0, *val_loss_before_, false);
  while (!ended() && !stopped()) {
    if (options_.profile && steps_ == profile_at)
      profile.emplace();
    StepRecord record = training_.make_step(steps_);
    if (steps_ == 0)
      record.val_loss_before = val_loss_before_;
    record.changes = std::exchange(changes_, "");
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
}

/// What follows a step's update: its evaluation, its row, and saving.
void Run::conclude(std::optional<StepRecord> record) {
  bool lowest = false;
  if (evaluation_pending()) {
    if (const std::optional<double> loss = validation_.estimate(steps_)) {
      Evaluations evaluations = notes_.evaluations;
      lowest = evaluations.add(steps_, *loss);
      progress_.validated(steps_, *loss, lowest);
      const bool last = finished(recipe_, steps_, evaluations);
      if (last)
        final_loss_ = validation_.whole(steps_);
      if (last && !final_loss_) {  // it was interrupted; both are made again
        lowest = false;
      } else {
        notes_.evaluations = evaluations;
        if (record) {
          record->val_loss = loss;
          record->final_val_loss = final_loss_;
        }
      }
    }
  }
  const bool elsewhere = keep_folder();
  if (record && writes_) {
    add_row(run_dir_.metrics(), format_row(validation_.with_kinds(*record)), record->step);
    milliseconds_ += record->ms;
  }
  sample();
  const std::size_t interval = options_.save_interval.value_or(recipe_.eval_interval);
  const bool save_point = steps_ % interval == 0 && !evaluation_pending();
  if (lowest || save_point)
    check_model();
  if (lowest && writes_)  // before the checkpoint, which says which is the best
    save_best();
  const bool retry = failed_ && Clock::now() - tried_ > retry_after;
  const bool other = (elsewhere || retry) && validation_.bad_weights().empty();
  if (writes_ && !ended() && (save_point || other))
    save(save_point);
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
          xgrad::io::format_json(xgrad::io::JsonObject{{"step", steps_}, {"text", text}}), steps_);
  if (steps_ < recipe_.max_iters)  // after the last step comes a longer one
    progress_.sampled(steps_, text);
}

void Run::show(const xgrad::Profile& profile) {
  progress_.clear();
  say(profile.table() + "\n");
  try {
    xgrad::io::write_chrome_trace(run_dir_.path() + "/trace.json", profile.events());
  } catch (const xgrad::FileError& error) {
    progress_.warn(error.what());
  }
}

/// A folder is made when there is something to put in it.
void Run::open_folder() {
  if (std::exchange(folder_open_, true))
    return;
  std::string lost;
  ranks_.together([&] {
    if (!writes_)
      return;
    lost = run_dir_.open(format_folder_notes(options_, source_.characters.size(), start_.config,
                                             first_, start_.changes),
                         format_environment(ranks_.size()), first_);
    milliseconds_ += run_dir_.metrics().milliseconds();
  });
  tell("Run", run_dir_.path());
  if (!lost.empty())
    tell("Note",
         fmt::format("going on after {}: {}.", xgrad::counted(first_, "step", "steps"), lost));
}

/// Sees to it that what is written is where the folder is now; whether it is at another place.
bool Run::keep_folder() {
  const std::string changed = writes_ && folder_open_ ? run_dir_.keep() : "";
  if (!changed.empty())
    progress_.warn(changed);
  return !changed.empty();
}

/// Adds a row to a file, and says it once if that fails.
void Run::add_row(Rows& rows, const std::string& row, std::uint64_t step) {
  const bool all_were_written = rows.unwritten() == 0;
  if (!rows.add(row, step) && all_were_written)
    progress_.warn(rows.error() + "; training goes on, and its rows are kept until it works");
}

void Run::write(const std::string& path) {
  // No checkpoint without its rows, not even after a power cut.
  run_dir_.metrics().sync();
  run_dir_.samples().sync();
  run_dir_.save(path, [this](const std::string& there) {
    xgrad::io::save_checkpoint(there, training_.model(), training_.optimizer(),
                               {.step = steps_, .user = to_json(notes_)});
  });
}

/// A save that fails does not end the run: it is said at once, and tried again.
bool Run::attempt(const std::function<void()>& save, bool& failed, const char* then) {
  tried_ = Clock::now();
  for (bool again = false;; again = true) {
    try {
      save();
      failed = false;
      return true;
    } catch (const std::exception& error) {
      // The folder may have been moved or removed meanwhile.
      if (again || !keep_folder()) {
        progress_.warn(fmt::format("{}; training goes on, {}", error.what(), then));
        failed = true;
        return false;
      }
      failed_ = true;  // a new folder has no checkpoint: it is due
      tried_ = {};
    }
  }
}

void Run::save(bool kept) {
  const bool failed_before = failed_;
  const char* const then = "and saving is tried again";
  if (!attempt([&] { write(run_dir_.checkpoint()); }, failed_, then))
    return;
  saved_ = steps_;
  const std::string after = xgrad::counted(steps_, "step", "steps");
  if (failed_before)
    progress_.warn(fmt::format("{}: saved again, after {}", run_dir_.checkpoint(), after));
  if (const std::size_t count = options_.keep.value_or(0); kept && count > 0) {
    bool failed = false;  // what was to be kept of these steps is lost, and the run is not
    attempt(
        [&] {
          run_dir_.keep_checkpoint(steps_, count, [this](const std::string& path) { write(path); });
        },
        failed, then);
  }
  if (is_verbose())
    progress_.line(fmt::format("after {}: saved in {}", after, run_dir_.checkpoint()));
}

void Run::save_best() {
  attempt([this] { write(run_dir_.best()); }, best_failed_,
          "and the next lower loss is saved again");
}

/// Of a run that goes on: what it begins with may be the best.
void Run::save_missing_best() {
  if (!best_is_missing(run_dir_, notes_.evaluations))
    return;
  const std::uint64_t step = notes_.evaluations.best->step;
  if (step != steps_) {
    warn(fmt::format("{}: the model of the lowest loss, after {}, is not in it", run_dir_.best(),
                     xgrad::counted(step, "step", "steps")));
    return;
  }
  open_folder();
  save_best();
}

/// Of steps that were made.
void Run::write_report() {
  if (steps_ == 0)
    return;
  if (const std::string why = report_of(run_dir_.path(), options_); !why.empty())
    progress_.warn(fmt::format("no report: {}", why));
}

/// What a signal says to do.
int Run::interrupted() {
  if (signal_ != SIGPIPE && steps_ == first_ && !folder_open_)
    progress_.line(fmt::format("Stopped by {} before the first step; nothing was written.",
                               signal_name(signal_)));
  else if (signal_ != SIGPIPE && failed_)  // exit_code() says what is lost
    progress_.line(fmt::format("Stopped by {} after {}; the model could not be saved.",
                               signal_name(signal_), format_count(steps_, "step", "steps")));
  else if (signal_ != SIGPIPE)
    progress_.line(fmt::format("Stopped by {} after {}; the model is in {}.  To go on:\n  {}",
                               signal_name(signal_), format_count(steps_, "step", "steps"),
                               run_dir_.checkpoint(), resume_command(options_, run_dir_.path())));
  return 128 + signal_;
}

int Run::completed() {
  if (steps_ < recipe_.max_iters)
    progress_.line(fmt::format(
        "No improvement in {}: the run ends after {}.  The model of the lowest loss, {:.4f} after "
        "{}, "
        "is {}.",
        xgrad::counted(recipe_.patience, "evaluation", "evaluations"),
        format_count(steps_, "step", "steps"), notes_.evaluations.best->loss,
        format_count(notes_.evaluations.best->step, "step", "steps"),
        best_is_missing(run_dir_, notes_.evaluations) ? "lost" : "in " + run_dir_.best()));
  if (!final_loss_)  // there was no last step
    final_loss_ = validation_.whole(steps_);
  if (!writes_)
    return 0;
  validation_.print(*final_loss_);
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
                     *saved_, xgrad::counted(steps_, "step", "steps"), run_dir_.checkpoint())
               : "the model could not be saved and is lost");
    code = 1;
  }
  if (!run_dir_.is_open())
    return code;
  for (const Rows* const file : {&run_dir_.metrics(), &run_dir_.samples()}) {
    if (const std::size_t rows = file->unwritten()) {
      progress_.warn(fmt::format("{}; the last {} lost", file->error(),
                                 rows == 1 ? "row is" : fmt::format("{} rows are", rows)));
      code = 1;
    }
  }
  return code;
}

}  // namespace

int train(const TrainOptions& options, Ranks& ranks) {
  std::optional<Start> start = prepare(options, ranks);
  if (!start)
    return 0;
  if (start->options.overfit_one_batch && !start->options.dry_run)
    return overfit_one_batch(*start, ranks);
  const Recipe& recipe = start->options.recipe;
  // From here on, the draws are those of the reference: the weights, then batch after batch.
  xgrad::manual_seed(start->options.seed);
  Training training(recipe, start->source, ranks);
  load_weights(*start, training);
  if (start->options.dry_run) {
    sample_prompt(start->options, start->source.characters);  // is refused as in a run
    const StopSignals signals;
    describe(*start, training, signals, [](const std::string& label, const std::string& text) {
      say(labelled(label, text));  // here it is the result
    });
    const int signal = signals.received();
    return signal == 0 ? 0 : 128 + signal;
  }
  return Run(*start, training).go();
}

}  // namespace char_transformer
