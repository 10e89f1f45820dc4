#pragma once
// The tokens of a model's ids.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include <xgrad/io/json.hpp>
#include <xgrad/lm/byte_pairs.hpp>
#include <xgrad/lm/characters.hpp>
#include <xgrad/lm/tokenizer.hpp>

namespace program {

using UnknownBytes = std::vector<xgrad::lm::UnknownBytes>;

/// A vocabulary of characters, or of byte pairs, which are called tokens.
class Vocabulary {
 public:
  Vocabulary() = default;
  explicit Vocabulary(xgrad::lm::Characters characters) : kind_(std::move(characters)) {}
  explicit Vocabulary(xgrad::lm::BytePairs pairs) : kind_(std::move(pairs)) {}
  /// The vocabulary of a checkpoint's JSON, as stored() gave it.  FileError, which names `path`.
  Vocabulary(const xgrad::io::Json& user, const std::string& path);
  /// The vocabulary of a tokenizer.json, of characters if they have been written by
  /// tokenizer_json().  FileError, which begins with `what`.
  static Vocabulary of_tokenizer(const xgrad::io::Json& json, const std::string& what);

  /// Null if it has byte pairs.
  const xgrad::lm::Characters* characters() const {
    return std::get_if<xgrad::lm::Characters>(&kind_);
  }
  const xgrad::lm::BytePairs* pairs() const { return std::get_if<xgrad::lm::BytePairs>(&kind_); }
  std::size_t size() const { return pairs() ? pairs()->size() : characters()->size(); }
  /// "character" or "token", and a number of them: "1 token", "12 characters".
  const char* unit() const { return pairs() ? "token" : "character"; }
  std::string count(std::size_t n) const;
  /// The key and the value in a checkpoint: a tokenizer.json is kept whole.
  std::pair<std::string, xgrad::io::Json> stored() const;
  /// The tokenizer.json that `export` writes.
  xgrad::io::Json tokenizer_json() const;

  /// The ids of UTF-8.  Special tokens of byte pairs are recognised.  ValueError for unknown
  /// characters of a vocabulary of characters; `unknown` as in BytePairs::encode().
  xgrad::lm::Ids encode(const std::string& utf8, UnknownBytes* unknown = nullptr) const;
  /// The special tokens that the tokenizer adds around a text, such as <|begin_of_text|>.
  const xgrad::lm::TextTemplate& text_template() const { return template_; }
  void drop_template() { template_ = {}; }
  /// A text's ids with these around them.
  std::vector<std::int64_t> in_template(std::vector<std::int64_t> ids) const;
  /// encode() with these; empty for an empty text.
  xgrad::lm::Ids encode_text(const std::string& utf8, UnknownBytes* unknown = nullptr) const;
  /// The number of bytes of UTF-8 without a token, which are dropped or become <unk>, as in
  /// HuggingFace's tokenizers.
  std::size_t unknown_bytes(const std::string& utf8) const;
  /// The bytes of an id, which may end within a character; empty beyond size(), where some models
  /// have unused ids.
  std::string bytes(std::int64_t id) const;
  /// Whether an id is that of a special token, such as <|endoftext|>.
  bool is_special(std::int64_t id) const { return pairs() && pairs()->is_special(id); }
  /// The bytes of a text's ids, without a space that the tokenizer puts before each text.
  std::string bytes(std::span<const std::int64_t> ids, bool skip_special_tokens = false) const;
  /// The same as text, with U+FFFD for bytes that are not UTF-8.
  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = false) const;
  /// An id for people: its text; bytes as "<E2 82>" if it has incomplete characters, with spaces
  /// that do not count as text (U+00A0); U+FFFD beyond size().
  std::string piece(std::int64_t id) const;
  /// The same for each token of a text; the parts of one character are numbered: "ï₁", "ï₂".
  std::vector<std::string> labels(std::span<const std::int64_t> ids) const;
  /// A mean loss over n ids after a text's first one in bits per byte of the text, which is
  /// comparable between vocabularies.  `unknown` is the text's.
  double bits_per_byte(double loss, const xgrad::lm::Ids& ids, std::size_t n,
                       const UnknownBytes& unknown) const;

  /// Whether ids have the same meaning.
  friend bool operator==(const Vocabulary& a, const Vocabulary& b) { return a.kind_ == b.kind_; }

 private:
  std::variant<xgrad::lm::Characters, xgrad::lm::BytePairs> kind_;
  std::string tokenizer_;  ///< a file's JSON as text; a tree would take several times the memory
  xgrad::lm::TextTemplate template_;
};

/// Warns of a text's bytes without tokens; `what` names the text.
void warn_of_unknown(const std::string& what, const std::string& utf8, const UnknownBytes& unknown,
                     const Vocabulary& vocabulary);

}  // namespace program
