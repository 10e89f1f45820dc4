#pragma once
// Sampling text from a model.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/lm/text.hpp>

#include "vocabulary.hpp"

namespace program {

/// The text that ends a document by --document-end: this, or that of the token with this id.
std::string document_end_text(const std::string& given, const Vocabulary& vocabulary);

/// A text as ids, with line ends and a byte order mark as in training.  ValueError, beginning with
/// `what`, for bytes that are not UTF-8, and for characters that the model does not know, with
/// those that it does.
std::vector<std::int64_t> encode(const std::string& what, const std::string& text,
                                 const Vocabulary& vocabulary);
/// The same, with the tokens that the tokenizer adds around a text.  An empty text becomes these
/// alone or, if there are none, a newline, or the first character if the model has no newline.
std::vector<std::int64_t> encode_prompt(const std::string& what, const std::string& text,
                                        const Vocabulary& vocabulary);

/// Ids as a batch of one row.
xgrad::Indices as_row(std::span<const std::int64_t> ids);

struct SampleOptions {
  std::string checkpoint = {}, base = {};
  std::size_t num_samples = 1;
  std::vector<std::string> prompts = {};  ///< an empty one, and none: as of encode_prompt()
  std::string file = {};                  ///< its contents are the prompt
  std::size_t tokens = 500;
  std::string stop = {};  ///< ends a sample, with special tokens as text; empty: none does
  bool raw = false;       ///< without tokens that the tokenizer adds
  bool ignore_eos = false, special_tokens = false;
  double repetition_penalty = 1;
  std::optional<xgrad::Size> no_repeat_ngram = {};
  xgrad::lm::GenerateOptions drawing = {.temperature = 0.8};
  std::uint64_t seed = 1337;
  std::size_t threads = 0;
  std::set<std::string> given = {};  ///< the flags with a value
};

/// Prints prompt and continuation, in whole characters, and a newline; a line between samples.
/// Special tokens are not printed, as by transformers' skip_special_tokens, unless the options say
/// so.  A single prompt's are printed as they are drawn, several are continued together, as each
/// alone. Each prompt has a generator of its own.  Ends early after the text of `stop`, and if the
/// pipe is closed.  Throws a ValueError that names each character of a prompt that the model does
/// not know, and those that it does.
void print_samples(const xgrad::lm::GPT& model, const Vocabulary& vocabulary,
                   const SampleOptions& options);

/// Prints the requested samples.  The settings of the model's generation_config.json stand for
/// flags that are not given, as in transformers.
void sample(const SampleOptions& options);

}  // namespace program
