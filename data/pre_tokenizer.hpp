#pragma once
// How a text is cut into pieces, within which byte pairs are merged.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace xgrad::text {

/// A step of a tokenizer.json's pre_tokenizer: each match is a part of a text, and so is the text
/// between two.
struct PatternSplit {
  /// A regular expression in the syntax of HuggingFace's tokenizers, Oniguruma's for Ruby.  The
  /// default is GPT-2's.
  std::string pattern =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  bool removed = false;  ///< matches are left out of the text
  bool invert = false;   ///< the text between matches is left out in their place

  friend bool operator==(const PatternSplit&, const PatternSplit&) = default;
};

/// Splits, of which each cuts the parts that the one before it leaves.  PCRE2 matches them, with
/// its version of Unicode: a code point that it does not know is neither letter nor number. Copies
/// share their memory.
class PreTokenizer {
 public:
  /// Throws ValueError, which names the place, for a pattern with an error, and for rare syntax
  /// that Oniguruma reads in its own way (a{1,3}+, [a&&b], [[:alpha:]], \b, \h).
  explicit PreTokenizer(const std::vector<PatternSplit>& splits);
  /// Calls piece() with each part, none empty, of a text that is UTF-8.  Throws ValueError where a
  /// match takes more steps than 64 for each byte of the text.
  void cut(std::string_view utf8, const std::function<void(std::string_view)>& piece) const;

 private:
  std::shared_ptr<const std::vector<struct CompiledSplit>> splits_;
};

/// A UTF-8 text in Unicode's normalization form C.
std::string nfc(std::string_view utf8);

/// The character that stands for each byte in the files of byte-level vocabularies: itself for '!'
/// to '~' and, of Latin-1, U+00A1 to U+00AC and U+00AE to U+00FF; U+0100 and on for the others in
/// their order.
const std::array<char32_t, 256>& byte_characters();
/// Bytes in these characters, in UTF-8.
std::string written_token(std::string_view bytes);

}  // namespace xgrad::text
