#pragma once
// Letting a model write.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <xgrad/data/characters.hpp>
#include <xgrad/nn/gpt.hpp>

namespace char_transformer {

struct SampleOptions {
  std::string checkpoint;
  std::size_t num_samples = 1;
  std::string prompt;  ///< empty: a newline, or else the first character
  std::string file;    ///< with the prompt
  bool interactive = false;
  std::size_t tokens = 500;
  std::string stop;  ///< the text that ends it; empty: none does
  xgrad::nn::GenerateOptions drawing = {.temperature = 0.8};
  bool show_probs = false;
  std::uint64_t seed = 1337;
  std::size_t threads = 0;
};

/// Prints prompt and continuation as they come, character by character, and a newline; with
/// `show_probs` the table of the characters, and then the text.  Draws from a generator of its own.
/// Ends early after the text of `stop`, and where nobody reads any more.  Throws ValueError naming
/// each character of prompt and stop that the model does not know, and those that it does.
void print_sample(const xgrad::nn::GPT& model, const xgrad::text::Characters& characters,
                  const SampleOptions& options);

}  // namespace char_transformer
