#pragma once
// The losses of a run on the text that it is not trained on.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "evaluate.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "source.hpp"
#include "training.hpp"

namespace char_transformer {

/// All of it works on all ranks together, and throws NotFinite on all for a loss that is not
/// finite.
class Validation {
 public:
  /// Shows how far a measurement is; `stop` may end it, and it then has no value.
  Validation(const TrainOptions& options, const Source& source, Training& training,
             Progress& progress, std::function<bool()> stop);

  /// After so many steps: over the same random batches each time, so that all that a run has
  /// compare.
  std::optional<double> estimate(std::uint64_t steps) const;
  /// That of the end, over as many blocks as --val-blocks says, which is announced.
  std::optional<double> whole(std::uint64_t steps) const;
  /// Throws NotFinite if a checkpoint would hold a weight that is not finite, or unless the model
  /// `is_measured`, give a loss that is not.
  void check_model(std::uint64_t steps, bool is_measured) const;
  /// Which weights are not finite; empty if all are.
  std::string bad_weights() const;

  /// A row that says what its losses are over.
  StepRecord with_kinds(StepRecord record) const;
  /// Prints the whole one.
  void print(double loss) const;

 private:
  std::optional<double> finite(std::uint64_t steps,
                               const std::function<std::optional<double>()>& measure) const;

  const TrainOptions& options_;
  const Source& source_;
  Training& training_;
  Progress& progress_;
  Stop stop_;
  std::size_t all_blocks_, blocks_;
};

}  // namespace char_transformer
