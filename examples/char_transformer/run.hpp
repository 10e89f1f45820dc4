#pragma once
// A run while it makes its steps.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <xgrad/autograd/profile.hpp>
#include <xgrad/data/batches.hpp>

#include "describe.hpp"
#include "evaluate.hpp"
#include "progress.hpp"
#include "resume.hpp"
#include "run_dir.hpp"
#include "start.hpp"
#include "stop.hpp"
#include "training.hpp"

namespace char_transformer {

/// What samples continue.  ValueError for a prompt that is too long or has characters that the
/// model does not know.
xgrad::text::Ids sample_prompt(const TrainOptions& options,
                               const xgrad::text::Characters& characters);

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
        blocks_(final_blocks(options_, source_.ids.validation)),
        all_blocks_(xgrad::text::block_count(source_.ids.validation, recipe_.block_size)),
        run_dir_(*start.run_dir),
        first_(start.resumed.value_or(0)),
        steps_(first_),
        notes_(start.notes),
        changes_(start.changes),
        progress_(first_, recipe_.max_iters, training.tokens_per_step(),
                  steps_of_validation(start, training)),
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
  // The losses on the text that it is not trained on; no value if stopped.
  std::optional<double> finite(const std::function<std::optional<double>()>& measure) const;
  std::optional<double> estimate(std::size_t batches, const Stop& stop) const;
  std::optional<double> estimate();
  std::optional<double> whole();
  Stop show_and_stop();
  void check_model() const;
  std::string bad_weights() const;
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
  const xgrad::text::Ids prompt_;          ///< of the samples
  const std::size_t blocks_, all_blocks_;  ///< of the last validation
  RunDir& run_dir_;
  std::uint64_t first_;  ///< steps made before
  std::uint64_t steps_;  ///< steps made
  Notes notes_;
  std::string changes_;  ///< of the flags; said in the row of the next step
  Progress progress_;
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

}  // namespace char_transformer
