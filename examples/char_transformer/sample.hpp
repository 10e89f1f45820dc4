#pragma once
// Letting a model write.

#include <xgrad/data/characters.hpp>
#include <xgrad/nn/gpt.hpp>

#include "options.hpp"

namespace char_transformer {

/// Prints prompt and continuation as they come, and a newline.  Draws from a generator of its own.
/// Throws ValueError naming each character of the prompt that the model does not know.
void print_sample(const xgrad::nn::GPT& model, const xgrad::data::Characters& characters,
                  const SampleOptions& options);

/// The command `sample`.
void sample(const SampleOptions& options);

}  // namespace char_transformer
