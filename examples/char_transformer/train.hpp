#pragma once
// Training a model.

#include <stdexcept>

#include "options.hpp"

namespace char_transformer {

/// A loss or a gradient that is no longer finite.  The message names the step and the op.
struct NotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The command `train`.  Returns the exit code: 0, or 128 + the signal that ended it early.  Throws
/// xgrad::Error for files and texts, and NotFinite, which ends the program with code 3; the
/// checkpoint is then the last that was good.
int train(const TrainOptions& options);

}  // namespace char_transformer
