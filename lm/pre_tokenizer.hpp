#pragma once
// Pre-tokenization: splits a text into parts within which byte pairs are merged.

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace xgrad::lm {

/// A step of a tokenizer.json's pre_tokenizer: splits a text into matches and the parts between
/// them.
struct PatternSplit {
  /// A regular expression in the syntax of HuggingFace's tokenizers, Oniguruma's for Ruby.  GPT-2's
  /// by default.
  std::string pattern =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  bool removed = false;  ///< drop the matches
  bool invert = false;   ///< drop the text between matches instead

  friend bool operator==(const PatternSplit&, const PatternSplit&) = default;
};

/// A sequence of splits; each splits the parts that the one before it made.  PCRE2 matches them,
/// with its version of Unicode: an unknown code point is neither letter nor number.  Copies share
/// their memory.
class PreTokenizer {
 public:
  /// Throws ValueError, which names the place, for a pattern with an error, and for rare syntax
  /// that Oniguruma interprets differently (a{1,3}+, [a&&b], [[:alpha:]], \b, \h).
  explicit PreTokenizer(const std::vector<PatternSplit>& splits);
  /// Calls piece() with each part, none empty, of a UTF-8 text.  Throws ValueError if a match takes
  /// more than 64 steps for each byte of the text.
  void cut(std::string_view utf8, const std::function<void(std::string_view)>& piece) const;

 private:
  std::shared_ptr<const std::vector<struct CompiledSplit>> splits_;
};

/// Whether a whole text matches a regular expression in PCRE2's syntax, as Python's re.fullmatch()
/// tells it.  ValueError for a pattern with an error, and for a match that takes too long.
bool matches_whole(const std::string& pattern, const std::string& text);

/// A UTF-8 text in Unicode's normalization form C.
std::string nfc(std::string_view utf8);

/// The characters that represent bytes in the files of byte-level vocabularies: a byte itself for
/// '!' to '~' and, of Latin-1, U+00A1 to U+00AC and U+00AE to U+00FF; U+0100 and on for the others
/// in order.
const std::array<char32_t, 256>& byte_characters();
/// Bytes in these characters, in UTF-8.
std::string written_token(std::string_view bytes);

}  // namespace xgrad::lm
