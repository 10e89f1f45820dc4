#pragma once
// The tokens that the ids of a model stand for.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include <xgrad/data/byte_pairs.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/io/json.hpp>
#include <xgrad/io/tokenizer.hpp>

namespace char_transformer {

/// Characters, or byte pairs, which are called tokens.
class Vocabulary {
 public:
  Vocabulary() = default;
  explicit Vocabulary(xgrad::text::Characters characters) : kind_(std::move(characters)) {}
  explicit Vocabulary(xgrad::text::BytePairs pairs) : kind_(std::move(pairs)) {}
  /// That of a checkpoint's JSON, as stored() gave it.  FileError, which names `path`.
  Vocabulary(const xgrad::io::Json& user, const std::string& path);
  /// That of a tokenizer.json.  FileError, which begins with `what`.
  static Vocabulary of_tokenizer(const xgrad::io::Json& json, const std::string& what);

  /// Null if it is the other kind.
  const xgrad::text::Characters* characters() const {
    return std::get_if<xgrad::text::Characters>(&kind_);
  }
  const xgrad::text::BytePairs* pairs() const {
    return std::get_if<xgrad::text::BytePairs>(&kind_);
  }
  std::size_t size() const;
  /// "character" or "token", and so many of them: "1 token", "12 characters".
  const char* unit() const { return pairs() ? "token" : "character"; }
  std::string count(std::size_t n) const;
  /// The key and the value that a checkpoint has: of a tokenizer.json all that it says.
  std::pair<std::string, xgrad::io::Json> stored() const;

  /// The ids of UTF-8.  Special tokens of byte pairs are recognised.  ValueError for characters
  /// that are not known.
  xgrad::text::Ids encode(const std::string& utf8) const;
  /// The special tokens that the tokenizer adds around a text, such as <|begin_of_text|>.
  const xgrad::io::TextTemplate& text_template() const { return template_; }
  void leave_out_template() { template_ = {}; }
  /// A text's ids with that.
  std::vector<std::int64_t> in_template(std::vector<std::int64_t> ids) const;
  /// encode() with that; none of an empty text.
  xgrad::text::Ids encode_text(const std::string& utf8) const;
  /// How many bytes of UTF-8 have no token and are left out, as HuggingFace's tokenizers do it.
  std::size_t left_out(const std::string& utf8) const;
  /// The bytes of an id, which need not be whole characters; none of one beyond size(), for which
  /// some models have room.
  std::string bytes(std::int64_t id) const;
  /// The text that ids stand for, with U+FFFD where it is not UTF-8.
  std::string decode(std::span<const std::int64_t> ids) const;
  /// An id as people see it: its text; if not all of it is whole characters, bytes as "<E2 82>",
  /// with spaces that do not count as text (U+00A0); U+FFFD of an id beyond size().
  std::string piece(std::int64_t id) const;
  /// The same of each token of a text, where the parts of a character are numbered: "ï₁", "ï₂".
  std::vector<std::string> labels(std::span<const std::int64_t> ids) const;
  /// A mean loss over these ids in bits per byte, so that vocabularies compare.
  double bits_per_byte(double loss, const xgrad::text::Ids& ids) const;

  /// Whether the ids stand for the same.
  friend bool operator==(const Vocabulary& a, const Vocabulary& b) { return a.kind_ == b.kind_; }

 private:
  std::variant<xgrad::text::Characters, xgrad::text::BytePairs> kind_;
  std::string tokenizer_;  ///< the JSON of a file; a tree would take several times the memory
  xgrad::io::TextTemplate template_;
};

/// Warns of bytes that left_out() counts; `what` names the text.
void warn_of_left_out(const std::string& what, const std::string& utf8,
                      const Vocabulary& vocabulary);

}  // namespace char_transformer
