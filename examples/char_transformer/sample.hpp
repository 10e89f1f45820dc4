#pragma once
// Letting a model write.

#include <string>
#include <xgrad/data/characters.hpp>
#include <xgrad/nn/gpt.hpp>

#include "options.hpp"

namespace char_transformer {

/// The ids of a prompt; of an empty one, a newline or else the first character.  Throws ValueError
/// naming the flag and each character that is not known.
xgrad::data::Ids encode_prompt(const char* flag, const std::string& prompt,
                               const xgrad::data::Characters& characters);

/// Prints prompt and continuation as they come, and a newline.  Draws from a generator of its own.
/// Throws ValueError naming each character of the prompt that the model does not know.
void print_sample(const xgrad::nn::GPT& model, const xgrad::data::Characters& characters,
                  const SampleOptions& options);

/// The command `sample`.
void sample(const SampleOptions& options);

}  // namespace char_transformer
