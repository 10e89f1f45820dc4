#pragma once
// Byte-level byte-pair encoding: the vocabularies of GPT-2 and its successors, and learned ones.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <xgrad/autograd/shape.hpp>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/pre_tokenizer.hpp>

namespace xgrad::text {

/// A token that is searched for in a text before pre-tokenization.  If its text is the written form
/// (written_token()) of its id's bytes, merging may give that id, too.
struct AddedToken {
  std::string text;
  std::uint32_t id = 0;
  bool special = true;      ///< a control token such as <|endoftext|>, not a word
  bool normalized = false;  ///< searched for after normalization, in the remaining text

  friend bool operator==(const AddedToken&, const AddedToken&) = default;
};

/// Whether the text of a special token is encoded as ordinary text or as that token.  The text of
/// other AddedTokens always becomes their token, except within the text of a special one.
enum class SpecialTokens : std::uint8_t { as_text, recognised };

/// A vocabulary whose tokens are bytes (Sennrich, Haddow and Birch, arXiv:1508.07909; Radford et
/// al. 2019).  A PreTokenizer splits a text; in each part, pairs of tokens are merged, the earliest
/// merge of the list first, beginning with the tokens of single bytes.  Ids are those of
/// HuggingFace's tokenizers with add_special_tokens=False.  Copies share their memory.
///
///     const auto vocabulary = text::BytePairs::learn(utf8, 1024, {"<|endoftext|>"});
///     const text::Ids ids = vocabulary.encode(utf8);
///     const io::Json stored = io::tokenizer_json(vocabulary);   // io::tokenizer_of() reads it
///     text::Utf8Stream characters;
///     for (const std::int64_t id : sampled)
///       std::cout << characters.add(vocabulary.bytes(id)) << std::flush;
///     std::cout << characters.finish();
class BytePairs {
 public:
  /// The definition of a vocabulary.
  struct Parts {
    std::vector<std::string> tokens;  ///< bytes, by id
    /// Pairs of ids, by rank; a pair becomes the token of its joined bytes.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> merges;
    std::vector<AddedToken> added;
    std::vector<PatternSplit> splits = {{}};  ///< GPT-2's
    bool nfc = false;                         ///< normalize a text to that form first
    bool ignore_merges = false;               ///< do not merge a pre-token that is a token

    friend bool operator==(const Parts&, const Parts&) = default;
  };

  /// Throws ValueError, which names the token or the merge, if two tokens have the same bytes, if
  /// an added one has the text of another's written_token(), or if a merge joins ids to no token.
  /// Bytes without a token are dropped from texts, as in HuggingFace's: SmolLM2 lacks some bytes
  /// that occur in no text.
  explicit BytePairs(Parts parts);

  /// The vocabulary of a text: 256 tokens of one byte, in the order of byte_characters(), one for
  /// each merge, and the special ones; fewer than `vocab_size` if no pair is left to merge.  Merges
  /// the most frequent pair; among equals the one of the lowest first id, then of the lowest
  /// second.  The result is that of HuggingFace's BpeTrainer, with special tokens last, unless its
  /// Unicode knows letters that PCRE2's does not.  Bytes that are not UTF-8 become U+FFFD.  Throws
  /// ValueError if `vocab_size` is smaller than the number of bytes and special tokens.
  static BytePairs learn(std::string_view utf8, Size vocab_size,
                         const std::vector<std::string>& special = {},
                         const std::vector<PatternSplit>& splits = {{}});

  Size size() const { return static_cast<Size>(parts().tokens.size()); }
  /// size() without added tokens at the end that merging cannot give.
  std::size_t text_size() const;
  const Parts& parts() const;

  /// The tokens of a text.  Bytes that are not UTF-8 become U+FFFD first (replace_invalid_utf8()).
  Ids encode(std::string_view utf8, SpecialTokens special = SpecialTokens::as_text) const;

  /// The bytes of ids, which may end within a character: Utf8Stream and replace_invalid_utf8() make
  /// them printable.  Throws ValueError for an id not below size().
  std::string decode(const Ids& ids) const;
  /// The bytes of one token.  Throws ValueError as decode() does.
  const std::string& bytes(std::int64_t id) const;

  /// The id of an added token: find("<|endoftext|>").
  std::optional<std::int64_t> find(std::string_view added) const;

  friend bool operator==(const BytePairs& a, const BytePairs& b) { return a.parts() == b.parts(); }

 private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;
};

}  // namespace xgrad::text
