#include "train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/random.hpp>

#include "output.hpp"
#include "run.hpp"

namespace char_transformer {
namespace {

/// The first steps are slower than all that follow.
constexpr std::size_t profile_from = 10, profiled_steps = 10;

constexpr auto retry_after = std::chrono::seconds(10);

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
  if (steps_ == 0 && !ended() && !stopped() && (val_loss_before_ = estimate()))
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
    if (const std::optional<double> loss = estimate()) {
      Evaluations evaluations = notes_.evaluations;
      lowest = evaluations.add(steps_, *loss);
      progress_.validated(steps_, *loss, lowest);
      const bool last = finished(recipe_, steps_, evaluations);
      if (last)
        final_loss_ = whole();
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
    if (record->val_loss || record->val_loss_before)
      record->val_loss_over = format_batches(recipe_.eval_iters);
    if (record->final_val_loss)
      record->final_val_loss_over = format_blocks(blocks_, all_blocks_);
    add_row(run_dir_.metrics(), format_row(*record), record->step);
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
  const bool other = (elsewhere || retry) && bad_weights().empty();
  if (writes_ && !ended() && (save_point || other))
    save(save_point);
}

}  // namespace char_transformer
