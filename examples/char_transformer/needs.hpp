#pragma once
// How much memory a command takes: to refuse what the machine does not have before it is asked
// for, and to say what takes it when there is not enough.

#include <cstddef>
#include <string>

#include "options.hpp"

namespace char_transformer {

/// Bytes, estimated: within a third of what a run takes where that is much.
struct Needs {
  double text = 0;     ///< an id for each character
  double weights = 0;  ///< with their gradients and what AdamW keeps
  double batch = 0;    ///< what the ops keep of a batch, or of an evaluation
  double total() const { return text + weights + batch; }
};

/// "96 kB", "58 MB", "1.2 GB".
std::string format_bytes(double bytes);

/// Of training on a text of so many bytes, with so many different characters and threads.
Needs needs_of(const Recipe& recipe, double text, std::size_t vocab_size, std::size_t threads);

/// What takes the memory of training, and which flags change it: for "not enough memory".
std::string describe_needs(const TrainOptions& options);

/// Throws xgrad::Error if training needs more than is available, unless --check-memory says not to
/// look.  Without vocab_size the text is still to be read.
void check_memory(const TrainOptions& options, std::size_t vocab_size = 0);

}  // namespace char_transformer
