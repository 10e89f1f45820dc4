#pragma once
// metrics.jsonl: a JSON object for each step, with "step", "loss" and maybe others.  Any program
// may have written it.

#include <string>
#include <vector>
#include <xgrad/pages/chart.hpp>

namespace runs {

/// Over steps, which count from 0.  What rows do not have is left out; null is NaN.
struct Metrics {
  xgrad::pages::Series loss, validation, lr, grad_norm, ms;
  xgrad::pages::Series final_validation;  ///< over whole blocks, where validation has estimates
  /// What the last of them are over, as "20 random batches"; empty if the file does not say.
  std::string validation_over, final_validation_over;
  std::vector<std::string> changes = {};  ///< of flags on the way: "from step 20 on: --lr 0.1 -> 0.2"
  std::string left_out = {};  ///< which lines are no rows, in a sentence; empty: none
};

/// Throws FileError for what is not a metrics file: no line of it is a row.
Metrics read_metrics(const std::string& path);

}  // namespace runs
