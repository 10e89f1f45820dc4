#pragma once
// The check that people make before a long run: can the model learn one batch by heart?

#include "start.hpp"
#include "training.hpp"

namespace char_transformer {

/// Trains on the run's first batch alone, with its model and its learning rate but without dropout,
/// weight decay and a schedule, until the loss is as low as it can be or --max-iters steps (500)
/// are made.  Prints a verdict; the exit code: 0 if the loss went down, 1 if not, 128 + a signal.
/// Writes no files.
int overfit_one_batch(Start& start, Ranks& ranks);

/// The lowest mean loss that any model can have on a batch, inputs and targets (B, T): where blocks
/// that begin alike go on in different ways, it cannot know how.
double lowest_loss(const xgrad::Indices& inputs, const xgrad::Indices& targets);

}  // namespace char_transformer
