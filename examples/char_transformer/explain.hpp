#pragma once
// The attention of a trained model, as a page.

#include "options.hpp"

namespace char_transformer {

/// The command `explain`: writes a page of the attention of a checkpoint, or of all that a run's
/// folder holds, on a prompt or a piece of text (pages/attention.hpp).
void explain(const ExplainOptions& options);

}  // namespace char_transformer
