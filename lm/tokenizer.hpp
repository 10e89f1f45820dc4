#pragma once
// Vocabularies of byte pairs in HuggingFace's files.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "../io/json.hpp"
#include "byte_pairs.hpp"

namespace xgrad::lm {

/// The vocabulary of a tokenizer.json: a model "BPE" with a normalizer NFC or none, and a
/// pre_tokenizer of Split and Digits with ByteLevel at its end (GPT-2) or a normalizer Replace of
/// spaces, with Prepend or not, a pre_tokenizer Metaspace, or none and a decoder Fuse (Llama 2,
/// characters: CharacterTokens).
/// Merges are "a b" or ["a", "b"].  Tokens that the post_processor adds around a text are not
/// included: see text_template().  "truncation" and "padding" have no effect, as in transformers'
/// AutoTokenizer.  Throws FileError, which names the place, for all else that changes ids (another
/// model, pre_tokenizer or normalizer, dropout ...), for ids that are not 0 to N - 1, each once,
/// and for merges of tokens that are not in the vocabulary.
BytePairs read_tokenizer(const std::string& path);

/// The vocabulary of GPT-2's vocab.json and merges.txt.  "<|endoftext|>", if present, is special.
/// Throws as above.
BytePairs read_tokenizer(const std::string& vocab_json, const std::string& merges_txt);

/// Writes a tokenizer.json, which HuggingFace's tokenizers read as well.
void write_tokenizer(const std::string& path, const BytePairs& vocabulary);

/// Converts a vocabulary to the contents of a tokenizer.json, five levels deep, for a checkpoint's
/// JSON, and back.  `what` names it in messages.
io::Json tokenizer_json(const BytePairs& vocabulary);
BytePairs tokenizer_of(const io::Json& json, const std::string& what);

/// Converts characters to a tokenizer.json without merges, and a vocabulary read from one back;
/// none if that has other tokens, or does more than give each character its id.  HuggingFace's
/// tokenizers drop characters without a token.
io::Json tokenizer_json(const Characters& characters);
std::optional<Characters> characters_of(const BytePairs& vocabulary);

/// The ids that transformers adds around a text by default, such as <|begin_of_text|>.
struct TextTemplate {
  std::vector<std::int64_t> before, after;
};
/// The template of a tokenizer.json's post_processor: ByteLevel, which adds none,
/// TemplateProcessing, or a Sequence of these.  Throws FileError as tokenizer_of(), also for ids
/// that `vocabulary` lacks.
TextTemplate text_template(const io::Json& json, const BytePairs& vocabulary,
                           const std::string& what);

}  // namespace xgrad::lm
