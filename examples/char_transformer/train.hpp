#pragma once
// Training a model.

#include "options.hpp"

namespace char_transformer {

/// The command `train`.  Returns the exit code: 0, or 128 + the signal that ended it early.  Throws
/// xgrad::Error for files and texts, and if the loss is no longer a number.
int train(const TrainOptions& options);

}  // namespace char_transformer
