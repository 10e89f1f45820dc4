#pragma once
// The command `train`: a run from its beginning, or from where it was left.

#include "options.hpp"
#include "start.hpp"
#include "training.hpp"

namespace char_transformer {

/// On each rank, of which the first alone prints and writes.  Returns the exit code: 0;
/// 128 + the signal that ended it early; 1 if something could not be saved.  Throws xgrad::Error
/// for files and texts, and NotFinite (training.hpp), which ends the program with code 3; the
/// checkpoint is then the last that was good.
int train(const TrainOptions& options, Ranks& ranks);

/// Trains on the run's first batch alone, with its model and its learning rate but without dropout,
/// weight decay and a schedule, until the loss is as low as it can be or --max-iters steps (500)
/// are made.  Prints a verdict; the exit code: 0 if the loss went down, 1 if not, 128 + a signal.
/// Writes no files.
int overfit_one_batch(Start& start, Ranks& ranks);

}  // namespace char_transformer
