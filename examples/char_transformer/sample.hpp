#pragma once
// Letting a model write.

#include <string>
#include <xgrad/data/characters.hpp>
#include <xgrad/nn/gpt.hpp>

#include "options.hpp"

namespace char_transformer {

/// Prints prompt and continuation as they come, character by character, and a newline; with
/// `show_probs` the table of the characters, and then the text.  Draws from a generator of its own.
/// Ends early after the text of `stop`, and where nobody reads any more.  Throws ValueError naming
/// each character of prompt and stop that the model does not know, and those that it does.
void print_sample(const xgrad::nn::GPT& model, const xgrad::text::Characters& characters,
                  const SampleOptions& options);

/// The command `sample`; the exit code: 1 if a line that is not typed on a terminal was refused.
int sample(const SampleOptions& options);

}  // namespace char_transformer
