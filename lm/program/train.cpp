// The command `train`: a new run, or a resumed one.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <utility>
#include <xgrad/autograd/trace.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/lm/adapters.hpp>

#include "output.hpp"
#include "progress.hpp"
#include "sample.hpp"

namespace program {
namespace {

constexpr std::size_t profiled_steps = 10;  // after as many others, which are slower
constexpr std::size_t sampled_tokens = 64, most_val_blocks = 2048;

std::string after(std::uint64_t steps) { return "after " + format_count(steps, "step"); }

Evaluation validation_of(const Run& run, Learner& learner) {
  return {learner.ranks(), learner.model(), run.dataset.ids.validation, run.dataset.document_end,
          run.options.recipe.block_size};
}

/// Makes the steps of a run, evaluates and saves.  The first of several ranks writes.
class Trainer {
 public:
  Trainer(Run& run, Learner& learner, std::vector<std::int64_t> prompt)
      : run_(run), learner_(learner), prompt_(std::move(prompt)) {}

  int go() {
    signals_.emplace();
    tell(describe(run_, learner_.model()));
    try {
      make_steps();
      if (folder_open_)
        check_model();
    } catch (const NotFinite& error) {
      if (folder_open_)
        report();  // it shows the losses before that
      fail<NotFinite>("{}\n{}", error.what(), last_checkpoint());
    }
    if (ended())
      signal_ = 0;
    if (signal_ == 0 || folder_open_) {
      open_folder();
      if (writes_)
        save();
      run_dir_.unlock();
      if (saved_ || checkpoint_in(run_dir_.path()))  // else the run can begin again there
        report();
    }
    signals_.reset();  // a signal may end the rest
    if (signal_ == 0)
      complete();
    else if (signal_ != SIGPIPE)
      say_stopped();
    return anything_lost() ? 1 : signal_ == 0 ? 0 : 128 + signal_;
  }

 private:
  void make_steps() {
    if (evaluation_pending(steps_) && !stopped()) {  // it was interrupted
      open_folder();
      conclude(writes_ ? runs::read_row(run_dir_.metrics().cut) : std::nullopt);
    }
    std::optional<double> before;
    if (steps_ == 0 && !ended() && !stopped())
      before = estimate(recipe_.eval_iters);
    if (before)
      progress_.validated(0, *before, false);
    std::string changes = run_.changes;
    std::optional<xgrad::Profile> profile;
    const std::uint64_t profile_at = std::min<std::uint64_t>(
        steps_ + profiled_steps, std::max<std::uint64_t>(recipe_.max_iters, 1) - 1);
    while (!ended() && !stopped()) {
      if (options_.profile && steps_ == profile_at)
        profile.emplace();
      MetricsRow row = learner_.make_step(steps_);
      ++steps_;
      open_folder();
      if (profile && (steps_ == profile_at + profiled_steps || steps_ == recipe_.max_iters)) {
        progress_.clear();
        say(profile->table() + "\n");
        if (writes_)
          try_save("trace.json", [&](const std::string& path) {
            xgrad::io::write_chrome_trace(path, profile->events());
          });
        profile.reset();
      }
      progress_.step(row);
      row.val_loss_before = std::exchange(before, std::nullopt);
      if (row.val_loss_before)
        row.val_loss_over = format_batches(recipe_.eval_iters);
      row.changes = std::exchange(changes, "");
      conclude(row);
    }
  }

  /// Ends a step after its update: evaluation, row, sample, and saving.
  void conclude(std::optional<MetricsRow> row) {
    bool lowest = false;
    if (evaluation_pending(steps_))
      if (const std::optional<double> loss = estimate(recipe_.eval_iters)) {
        Evaluations evaluations = evaluations_;
        evaluations.last = steps_;
        lowest = !evaluations.best || *loss < evaluations.best->loss;
        if (lowest)
          evaluations.best = {steps_, *loss};
        progress_.validated(steps_, *loss, lowest);
        const bool last = finished(recipe_, steps_, evaluations);
        if (last)
          final_loss_ = whole();
        if (last && !final_loss_) {  // it was interrupted; both are made again
          lowest = false;
        } else {
          evaluations_ = evaluations;
          if (row) {
            row->val_loss = loss;
            row->val_loss_over = format_batches(recipe_.eval_iters);
          }
          if (row && final_loss_) {
            row->final_val_loss = final_loss_;
            row->final_val_loss_over = format_blocks(blocks_, all_blocks_);
            row->bits_per_byte = bits_per_byte();
          }
        }
      }
    if (writes_ && row)
      add_row(run_dir_.metrics(), runs::format_row(*row));
    sample();
    const bool save_point = steps_ % options_.save_interval.value_or(recipe_.eval_interval) == 0 &&
                            !evaluation_pending(steps_);
    if (lowest || save_point)
      check_model();
    if (lowest && writes_)  // before the checkpoint, which says which is the best
      best_failed_ = !save_model(best_name);
    if (writes_ && !ended() && save_point)
      save();
  }

  bool evaluation_pending(std::uint64_t steps) const {
    return evaluation_due(recipe_, steps) && evaluations_.last != steps;
  }
  bool ended() const { return finished(recipe_, steps_, evaluations_); }
  /// Whether to end early: on all ranks, if any of them was signalled.
  bool stopped() {
    if (signals_)
      signal_ = ranks_.any_signal(signals_->received());
    return signal_ != 0;
  }

  /// A validation loss; no value if stopped.  Throws NotFinite, on all ranks, for one that is not
  /// finite.
  std::optional<double> measured(const std::function<std::optional<double>(const Stop&)>& loss) {
    Stop stop{.between = [this](double done) {
      progress_.evaluating(done);
      return stopped();
    }};
    if (ranks_.size() == 1)  // ranks agree between batches
      stop.within = [this] { return signals_ && signals_->received() != 0; };
    const std::optional<double> value = loss(stop);
    if (value && !std::isfinite(*value))
      fail<NotFinite>("{} the validation loss is {}\n{}",
                      steps_ == 0 ? "before the first step"
                                  : fmt::format("step {}: after its update", steps_ - 1),
                      *value, first_anomaly([&] { loss(stop); }));
    return value;
  }
  /// Over the same random batches each time, so that all evaluations of a run compare.
  std::optional<double> estimate(std::size_t batches) {
    return measured([&](const Stop& stop) {
      return evaluation_.estimate(recipe_.batch_size, batches, options_.seed, stop);
    });
  }
  /// The final loss, over at most 2048 blocks.
  std::optional<double> whole() {
    progress_.line("validation over " + format_blocks(blocks_, all_blocks_));
    return measured([&](const Stop& stop) { return evaluation_.over_blocks(blocks_, stop); });
  }
  double bits_per_byte() const {
    return vocabulary_.bits_per_byte(*final_loss_, validation_, blocks_ * recipe_.block_size,
                                     run_.dataset.unknown.validation);
  }
  /// Throws NotFinite if a weight is not finite, or a loss, which is computed here unless the model
  /// was just evaluated.
  void check_model() {
    if (const auto wrong = not_finite(xgrad::nn::state_dict(learner_.model())); !wrong.empty())
      fail<NotFinite>("step {}: after its update {}", steps_ - 1, wrong);
    if (evaluations_.last != steps_)  // a few blocks, because a signal may have asked to stop
      measured([&](const Stop&) {
        return evaluation_.estimate(xgrad::parallel::shard_count(recipe_.batch_size), 1,
                                    options_.seed, {});
      });
  }

  /// Records a sample of the model, if it is due.  Its generator begins with the run's seed, so
  /// training does not depend on it.
  void sample() {
    const auto interval = options_.sample_interval;
    const bool due =
        interval ? *interval > 0 && steps_ % *interval == 0 : evaluation_due(recipe_, steps_);
    if (!writes_ || evaluation_pending(steps_) || !due)
      return;
    const xgrad::Autocast off(false);  // as `sample` draws
    xgrad::Generator generator(options_.seed);
    const xgrad::Indices written =
        learner_.model().generate(as_row(prompt_), sampled_tokens, generator,
                                  {.temperature = 0.8, .eos_token_id = end_of_text(run_.info)});
    const std::string text =
        vocabulary_.decode({written.data(), static_cast<std::size_t>(written.numel())}, true);
    add_row(run_dir_.samples(),
            xgrad::io::format_json(xgrad::io::JsonObject{{"step", steps_}, {"text", text}}));
    if (steps_ < recipe_.max_iters)  // after the last step comes a longer one
      progress_.sampled(steps_, text);
  }

  /// Makes the folder once there is something to write.
  void open_folder() {
    if (std::exchange(folder_open_, true))
      return;
    const std::uint64_t begin = run_.steps();
    std::string lost;
    ranks_.together([&] {
      // The row of a step whose evaluation is repeated is written again.
      const std::uint64_t rows = begin - (steps_ == begin && evaluation_pending(begin) ? 1 : 0);
      if (writes_)
        lost = run_dir_.open(format_config(options_, vocabulary_.size()),
                             format_environment(ranks_.size()), begin, rows);
    });
    tell(labelled("Run", run_dir_.path()));
    if (!lost.empty())
      tell(labelled("Note", fmt::format("going on {}: {}.", after(begin), lost)));
  }

  std::string last_checkpoint() const {
    return saved_ ? fmt::format("The last good checkpoint, {}, is {}.", after(*saved_),
                                run_dir_.checkpoint())
                  : "There is no checkpoint yet.";
  }

  /// No checkpoint may lack a row, so the run ends if one cannot be written.
  void add_row(JsonLines& rows, const std::string& row) {
    try {
      rows.add(row);
    } catch (const FileError& error) {
      progress_.clear();
      fail<FileError>("{}; the run ends\n{}", error.what(), last_checkpoint());
    }
  }

  /// A failed save is reported and does not end the run.
  bool try_save(const char* name, const std::function<void(const std::string& path)>& write) {
    try {
      write(run_dir_.path() + "/" + name);
      return true;
    } catch (const std::exception& error) {
      progress_.warn(fmt::format("{}; training continues", error.what()));
      return false;
    }
  }

  bool save_model(const std::string& name) {
    run_.info.evaluations = evaluations_;
    return try_save(name.c_str(), [this](const std::string& path) {
      // No checkpoint without its rows, not even after a power cut.
      run_dir_.metrics().sync();
      run_dir_.samples().sync();
      xgrad::io::save_checkpoint(
          path, learner_.model(), learner_.optimizer(),
          {.step = steps_, .user = to_json(run_.info), .trained_only = run_.info.lora.has_value()});
    });
  }

  void save_adapters() {
    adapters_failed_ =
        run_.info.lora && !try_save("adapters", [this](const std::string&) {
          xgrad::lm::save_adapters(run_dir_.path(), learner_.model(), run_.info.lora->base, true);
        });
  }

  void save() {
    // Adapters come before the checkpoint: no finished run has those of an earlier step, even if it
    // is killed in between.  They come after the first one: a folder of adapters without a
    // checkpoint could not be resumed, and no other run could begin there.
    const bool first = !checkpoint_in(run_dir_.path());
    if (!first)
      save_adapters();
    const bool failed_before = std::exchange(failed_, !save_model(checkpoint_name));
    if (failed_)
      return;
    if (first)
      save_adapters();
    saved_ = steps_;
    run_dir_.tidy(steps_);
    if (failed_before)
      progress_.line(fmt::format("{}: saved in {}", after(steps_), run_dir_.checkpoint()));
  }

  void report() {
    const std::string why = writes_ && steps_ > 0 ? write_report(run_dir_.path()) : "";
    if (!why.empty())
      progress_.warn(fmt::format("no report: {}", why));
  }

  void complete() {
    if (!final_loss_)  // there was no last step
      final_loss_ = whole();
    if (!writes_)
      return;
    print_loss("val_loss", *final_loss_, bits_per_byte(),
               fmt::format("{} of {}, {} each{}", format_blocks(blocks_, all_blocks_),
                           run_.dataset.validation_name, vocabulary_.count(recipe_.block_size),
                           blocks_ < all_blocks_ ? "; eval takes all" : ""),
               run_.dataset.entropy(blocks_ * recipe_.block_size));
    SampleOptions sample{.seed = options_.seed};
    sample.tokens =
        options_.sample_tokens.value_or(run_.info.model ? sampled_tokens : sample.tokens);
    sample.drawing.eos_token_id = end_of_text(run_.info);
    sample.stop = document_end_text(options_.document_end, vocabulary_);
    tell(fmt::format("The run is in {}.{}\n", run_dir_.path(),
                     sample.tokens > 0 ? " What the model writes:" : ""));
    const xgrad::Autocast off(false);
    if (sample.tokens > 0)
      print_samples(learner_.model(), vocabulary_, sample);
  }

  void say_stopped() {
    const char* const name = signal_name(signal_);
    progress_.line(
        !folder_open_
            ? fmt::format("Stopped by {} before the first step; nothing was written.", name)
        : failed_
            ? fmt::format("Stopped by {} {}; the model could not be saved.", name, after(steps_))
            : fmt::format("Stopped by {} {}; the model is in {}.  To resume:\n  {}", name,
                          after(steps_), run_dir_.checkpoint(),
                          resume_command(options_, run_dir_.path())));
  }

  /// Whether something could not be saved, which it reports.
  bool anything_lost() {
    const bool lost = failed_ || best_failed_;
    if (adapters_failed_ && !failed_)
      progress_.warn(
          fmt::format("the adapters' own files are not those of the checkpoint; export {} "
                      "--adapters --out DIR writes them",
                      run_dir_.path()));
    if (lost)
      progress_.warn(saved_
                         ? fmt::format("later steps are lost; the last checkpoint, {} of {}, is "
                                       "{}",
                                       after(*saved_), format_count(steps_), run_dir_.checkpoint())
                         : "the model could not be saved and is lost");
    return lost || adapters_failed_;
  }

  Run& run_;
  Learner& learner_;
  const std::vector<std::int64_t> prompt_;  ///< for samples
  const TrainOptions& options_ = run_.options;
  const Recipe& recipe_ = options_.recipe;
  const Vocabulary& vocabulary_ = run_.dataset.vocabulary;
  const xgrad::lm::Ids& validation_ = run_.dataset.ids.validation;
  const Ranks& ranks_ = learner_.ranks();
  const Evaluation evaluation_ = validation_of(run_, learner_);
  const bool writes_ = ranks_.rank() == 0;
  const std::size_t all_blocks_ = xgrad::lm::block_count(validation_, recipe_.block_size),
                    blocks_ = std::min(most_val_blocks, all_blocks_);
  RunDir& run_dir_ = *run_.run_dir;
  std::uint64_t steps_ = run_.steps();  ///< steps made
  Evaluations evaluations_ = run_.info.evaluations;
  Progress progress_{steps_, recipe_.max_iters, learner_.tokens_per_step()};
  std::optional<double> final_loss_;    ///< over consecutive blocks, at the end
  std::optional<StopSignals> signals_;  ///< while steps are made
  int signal_ = 0;                      ///< received by any rank
  bool folder_open_ = false;
  std::optional<std::uint64_t> saved_ = run_.resumed;  ///< the steps of the checkpoint
  /// The last saves of the last model, of the best and of the adapters.
  bool failed_ = false, best_failed_ = false, adapters_failed_ = false;
};

/// The milliseconds of a batch of blocks, by those of parts of it: ms_of(blocks).
double time_batch(std::size_t batch, const std::function<double(std::size_t blocks)>& ms_of) {
  double ms = std::numeric_limits<double>::infinity(), spent = 0;
  std::size_t part = xgrad::parallel::shard_count(batch);
  for (std::size_t i = 0; i < 8 && spent < 500; ++i) {
    const double took = ms_of(part);
    ms = std::min(ms, took * static_cast<double>(batch) / static_cast<double>(part));
    spent += took;
    if (spent < 100)
      part = std::min(batch, 4 * part);
  }
  return ms;
}

/// Saves nothing: its steps and evaluations are made to be timed.
void dry_run(Run& run, Learner& learner) {
  say(describe(run, learner.model()));
  Recipe& recipe = run.options.recipe;
  const xgrad::lm::Ids& validation = run.dataset.ids.validation;
  const std::size_t made = run.steps(), all = recipe.max_iters, batch = recipe.batch_size,
                    every = recipe.eval_interval;
  const auto batches = static_cast<double>(std::exchange(recipe.gradient_accumulation_steps, 1));
  std::size_t step = made;
  const double step_ms = batches * time_batch(batch, [&](std::size_t blocks) {
                           recipe.batch_size = blocks;
                           return *learner.make_step(step++).ms;
                         });
  const double batch_ms = time_batch(batch, [&](std::size_t blocks) {
    const auto begin = std::chrono::steady_clock::now();
    validation_of(run, learner).estimate(blocks, 1, run.options.seed, {});
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    return took.count();
  });
  const std::size_t at_ends = (made == 0 && all > 0 ? 1 : 0) + (all > made && all % every != 0),
                    evaluations = all / every - made / every + at_ends,
                    final_blocks = std::min(most_val_blocks,
                                            xgrad::lm::block_count(validation, recipe.block_size));
  const double batches_of_all = static_cast<double>(recipe.eval_iters * evaluations) +
                                static_cast<double>(final_blocks) / static_cast<double>(batch),
               ms = step_ms * static_cast<double>(all - made) + batch_ms * batches_of_all;
  say(labelled(
      "Time",
      fmt::format("about {}: {} of {:.3g} {}, {} of {}, and the final loss.",
                  format_duration(ms / 1000), format_count(all - made, "step"),
                  step_ms < 1000 ? step_ms : step_ms / 1000, step_ms < 1000 ? "ms" : "s",
                  format_count(evaluations, "evaluation"),
                  format_duration(batch_ms / 1000 * static_cast<double>(recipe.eval_iters)))));
}

}  // namespace

int train(const TrainOptions& given, Ranks& ranks) {
  std::optional<Run> run = prepare(given, ranks);
  if (!run)
    return 0;
  const TrainOptions& options = run->options;
  const xgrad::Autocast precision(options.dtype == "bfloat16");
  if (options.overfit_one_batch && !options.dry_run)
    return overfit_one_batch(*run, ranks);
  const std::vector<std::int64_t> prompt =
      encode_prompt("--sample-prompt", options.sample_prompt, run->dataset.vocabulary);
  // From here on, the draws are those of the reference: the weights, then batch after batch.
  xgrad::manual_seed(options.seed);
  Learner learner(*run, ranks);
  if (!options.dry_run)
    return Trainer(*run, learner, prompt).go();
  dry_run(*run, learner);
  return 0;
}

}  // namespace program
