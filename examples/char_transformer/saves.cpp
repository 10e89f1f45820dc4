// What a run measures, writes down and saves.

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <span>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/io/chrome_trace.hpp>

#include "output.hpp"
#include "prompt.hpp"
#include "report.hpp"
#include "run.hpp"
#include "sample.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

constexpr std::size_t sampled_characters = 64;

}  // namespace

xgrad::text::Ids sample_prompt(const TrainOptions& options,
                               const xgrad::text::Characters& characters) {
  constexpr std::size_t longest = 1000;  // a row has to be shorter than what Rows reads
  xgrad::text::Ids ids = encode_prompt("--sample-prompt", options.sample_prompt, characters);
  if (ids.size() > longest)
    throw xgrad::ValueError(
        fmt::format("--sample-prompt: {} characters are more than {}", ids.size(), longest));
  return ids;
}

/// Throws NotFinite, on all ranks, for a loss that is not finite.
std::optional<double> Run::finite(const std::function<std::optional<double>()>& measure) const {
  const std::optional<double> loss = measure();
  if (loss && !std::isfinite(*loss))
    throw NotFinite(fmt::format("{} the validation loss is {}\n{}",
                                steps_ == 0 ? "before the first step"
                                            : fmt::format("step {}: after its update", steps_ - 1),
                                *loss, first_anomaly([&] { measure(); })));
  return loss;
}

/// Shows how far a measurement is; a signal ends it.
Stop Run::show_and_stop() {
  return [this](double done) {
    progress_.evaluating(done);
    return stopped();
  };
}

/// Over the same random batches each time, so that all that a run has compare.
std::optional<double> Run::estimate(std::size_t batches, const Stop& stop) const {
  return finite([&] {
    return estimate_loss(ranks_, training_.model(), source_.ids.validation, recipe_.batch_size,
                         batches, options_.seed, stop);
  });
}
std::optional<double> Run::estimate() { return estimate(recipe_.eval_iters, show_and_stop()); }

/// That of the end, over as many blocks as --val-blocks says.
std::optional<double> Run::whole() {
  progress_.line("validation over " + format_blocks(blocks_, all_blocks_));
  const Stop stop = show_and_stop();
  return finite(
      [&] { return block_loss(ranks_, training_.model(), source_.ids.validation, blocks_, stop); });
}

std::string Run::bad_weights() const {
  return not_finite(xgrad::nn::state_dict(training_.model()));
}

/// Throws NotFinite if a checkpoint would hold a weight that is not finite, or unless the model was
/// just measured, give a loss that is not.
void Run::check_model() const {
  if (const std::string wrong = bad_weights(); !wrong.empty())
    throw NotFinite(fmt::format("step {}: after its update {}", steps_ - 1, wrong));
  if (notes_.evaluations.last != steps_)
    estimate(1, [](double) { return false; });
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

/// Of steps that were made.
void Run::write_report() {
  if (steps_ == 0)
    return;
  if (const std::string why = report_of(run_dir_.path(), options_); !why.empty())
    progress_.warn(fmt::format("no report: {}", why));
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
    final_loss_ = whole();
  if (!writes_)
    return 0;
  print_loss("val_loss", *final_loss_,
             fmt::format("{} of {}{}", format_blocks(blocks_, all_blocks_), source_.validation_name,
                         blocks_ < all_blocks_ ? "; --val-blocks 0 takes all" : ""),
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

}  // namespace char_transformer
