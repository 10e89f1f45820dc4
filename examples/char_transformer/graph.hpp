#pragma once
// The command `graph`: what a model computes on a short text, and each gradient with its reason.

#include "options.hpp"

namespace char_transformer {

/// Writes the graph of the loss on the prompt, or prints it.  ValueError for a prompt of other than
/// 2 to block_size + 1 characters, or with characters that the model does not know.
void graph(const GraphOptions& options);

}  // namespace char_transformer
