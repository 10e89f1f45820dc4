#pragma once
// Byte-level vocabularies in HuggingFace's files.

#include <string>
#include <xgrad/data/byte_pairs.hpp>
#include <xgrad/io/json.hpp>

namespace xgrad::io {

/// The vocabulary of a tokenizer.json: a model "BPE", a pre_tokenizer of one Pattern (ByteLevel
/// alone, or after Digits, or after Split by one of the patterns that are known), a normalizer NFC
/// or none.  Merges are "a b" or ["a", "b"].  What the post_processor adds around a text, such as
/// <|begin_of_text|>, is not part of it.  Throws FileError, which says where, for all else that
/// changes the ids (another model, pattern or normalizer, byte_fallback, dropout, add_prefix_space,
/// truncation ...), for ids that are not 0 to N - 1, each once, and for merges of what there is
/// not.
text::BytePairs read_tokenizer(const std::string& path);

/// The vocabulary of GPT-2's vocab.json and merges.txt.  "<|endoftext|>" is special, if it is
/// there. Throws as above.
text::BytePairs read_tokenizer(const std::string& vocab_json, const std::string& merges_txt);

/// Writes a tokenizer.json, which HuggingFace's tokenizers read as well.
void write_tokenizer(const std::string& path, const text::BytePairs& vocabulary);

/// What a tokenizer.json holds, five levels deep: for a checkpoint's JSON, and from it.  `what`
/// names it in the message.
Json tokenizer_json(const text::BytePairs& vocabulary);
text::BytePairs tokenizer_of(const Json& json, const std::string& what);

}  // namespace xgrad::io
