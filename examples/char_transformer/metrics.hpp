#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <xgrad/io/json.hpp>

namespace char_transformer {

/// A step, as a row of metrics.jsonl says it.
struct StepRecord {
  std::size_t step = 0;  ///< from 0
  double loss = 0;       ///< before the step's update
  double lr = 0;
  double grad_norm = 0;                        ///< before clipping
  double ms = 0;                               ///< of the step, without evaluations
  std::optional<double> val_loss_before = {};  ///< of step 0: an estimate before its update
  std::optional<double> val_loss = {};         ///< an estimate after the step's update
  std::string val_loss_over = {};              ///< what these two are estimated over
  std::optional<double> final_val_loss = {};   ///< of the last step, over whole blocks
  std::string final_val_loss_over = {};
  std::string changes = {};  ///< of the run's flags before this step
};

/// A row, in one line.
std::string format_row(const StepRecord& record);
/// A row without its evaluations, which are made again; none for what is no row.
std::optional<StepRecord> read_row(const xgrad::io::Json& row);

}  // namespace char_transformer
