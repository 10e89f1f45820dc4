#pragma once
// Byte-pair encoding of bytes (GPT-2 and its successors, learned vocabularies) or characters (Llama
// 2).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "../autograd/shape.hpp"
#include "characters.hpp"
#include "pre_tokenizer.hpp"

namespace xgrad::lm {

/// A token that is searched for in a text before pre-tokenization.  If its text is the written form
/// (written_token()) of its id's bytes, merging may give that id, too.
struct AddedToken {
  std::string text;
  std::uint32_t id = 0;
  bool special = true;       ///< a control token such as <|endoftext|>, not a word
  bool normalized = false;   ///< searched for after normalization, in the remaining text
  bool lstrip = false;       ///< the whitespace before it belongs to it
  bool rstrip = false;       ///< the whitespace after it belongs to it
  bool single_word = false;  ///< not found beside letters, digits and other characters of words

  friend bool operator==(const AddedToken&, const AddedToken&) = default;
};

/// Whether the text of a special token is encoded as ordinary text or as that token.  The text of
/// other AddedTokens always becomes their token, except within the text of a special one.
enum class SpecialTokens : std::uint8_t { as_text, recognised };

/// The options of a vocabulary like Llama 2's, whose tokens are texts with U+2581 for spaces.
struct CharacterTokens {
  /// How a text's spaces become U+2581: by HuggingFace's normalizers Prepend and Replace, Replace
  /// alone, or its pre_tokenizer Metaspace.  U+2581 is also put before each part between added
  /// tokens (prepended; always, unless there is one) or only before a text (first).  `kept`: they
  /// stay spaces, and U+2581 is a character like any other.
  enum class Spaces : std::uint8_t { prepended, replaced, never, first, always, kept };

  std::uint32_t size = 0;  ///< merging gives ids below it; the others are added tokens
  Spaces spaces = Spaces::prepended;
  bool split = false;         ///< Metaspace splits before each U+2581
  bool byte_fallback = true;  ///< characters without a token become those of bytes, "<0x00>" ...
  bool fuse_unk = false;      ///< ... or `unk`, once for all such characters in a row
  std::optional<std::uint32_t> unk = {};  ///< none: they are dropped
  bool strip = true;                      ///< decode() drops a space at the beginning

  friend bool operator==(const CharacterTokens&, const CharacterTokens&) = default;
};

/// Bytes of a text that have no token.  `at` is the place of an id: that of CharacterTokens::unk,
/// which stands for them, or else that before or within which they were dropped.
struct UnknownBytes {
  std::size_t at, bytes;
};

/// A vocabulary whose tokens are bytes (Sennrich, Haddow and Birch, arXiv:1508.07909; Radford et
/// al. 2019) or texts (CharacterTokens).  A text is split; in each part, pairs of tokens are
/// merged, the earliest merge of the list first, beginning with the tokens of single bytes or
/// characters. Ids are those of HuggingFace's tokenizers with add_special_tokens=False.  Copies
/// share their memory.
///
///     const auto vocabulary = BytePairs::learn(utf8, 1024, {"<|endoftext|>"});
///     const Ids ids = vocabulary.encode(utf8);
///     const io::Json stored = tokenizer_json(vocabulary);   // tokenizer_of() reads it
///     Utf8Stream characters;
///     for (const std::int64_t id : sampled)
///       std::cout << characters.add(vocabulary.bytes(id)) << std::flush;
///     std::cout << characters.finish();
class BytePairs {
 public:
  /// The definition of a vocabulary.
  struct Parts {
    std::vector<std::string> tokens;  ///< bytes or, with `characters`, texts, by id
    /// Pairs of ids, by rank; a pair becomes the token of its joined bytes or texts.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> merges;
    std::vector<AddedToken> added;
    std::vector<PatternSplit> splits = {{}};         ///< GPT-2's
    bool nfc = false;                                ///< normalize a text to that form first
    bool ignore_merges = false;                      ///< do not merge a pre-token that is a token
    std::optional<CharacterTokens> characters = {};  ///< none: byte-level

    friend bool operator==(const Parts&, const Parts&) = default;
  };

  /// Throws ValueError, which names the token or the merge, if two tokens have the same bytes, if
  /// an added one has the text of another's written_token(), or if a merge joins ids to no token;
  /// and for CharacterTokens with `splits`, or whose `size` or `unk` is wrong.
  /// Bytes without a token are dropped from texts, as in HuggingFace's: SmolLM2 lacks some bytes
  /// that occur in no text.
  explicit BytePairs(Parts parts);

  /// The vocabulary of a text: 256 tokens of one byte, in the order of byte_characters(), one for
  /// each merge, and the special ones; fewer than `vocab_size` if no pair is left to merge.  Merges
  /// the most frequent pair; among equals the one of the lowest first id, then of the lowest
  /// second.  The result is that of HuggingFace's BpeTrainer, with special tokens last, unless its
  /// Unicode knows letters that PCRE2's does not.  Bytes that are not UTF-8 become U+FFFD.  Throws
  /// ValueError if `vocab_size` is smaller than the number of bytes and special tokens.
  static BytePairs learn(std::string_view utf8, Dim vocab_size,
                         const std::vector<std::string>& special = {},
                         const std::vector<PatternSplit>& splits = {{}});

  Size size() const { return static_cast<Size>(parts().tokens.size()); }
  /// size() without added tokens at the end that merging cannot give.
  std::size_t text_size() const;
  const Parts& parts() const;

  /// The tokens of a text.  Bytes that are not UTF-8 become U+FFFD first (replace_invalid_utf8()).
  /// `unknown`, if given, gets the bytes without tokens, in the order of the text.
  Ids encode(std::string_view utf8, SpecialTokens special = SpecialTokens::as_text,
             std::vector<UnknownBytes>* unknown = nullptr) const;

  /// The bytes of ids, which may end within a character: Utf8Stream and replace_invalid_utf8() make
  /// them printable.  `skip_special_tokens`: without those of is_special(), as in transformers.
  /// Throws ValueError for an id not below size().
  std::string decode(const Ids& ids, bool skip_special_tokens = false) const;
  /// Whether an id is that of a special AddedToken.
  bool is_special(std::int64_t id) const;
  /// The bytes of one token, with spaces for U+2581.  Throws ValueError as decode() does.
  const std::string& bytes(std::int64_t id) const;
  /// Whether decode() drops a space at the beginning.
  bool strips() const { return parts().characters && parts().characters->strip; }

  /// The id of an added token: find("<|endoftext|>").
  std::optional<std::int64_t> find(std::string_view added) const;

  friend bool operator==(const BytePairs& a, const BytePairs& b) { return a.parts() == b.parts(); }

 private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;
};

}  // namespace xgrad::lm
