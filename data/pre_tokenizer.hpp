#pragma once
// How a text is cut into pieces, within which byte pairs are merged.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace xgrad::text {

/// Patterns of models that are in use, as regular expressions of which each match is a piece:
///
///   gpt2     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///   llama3   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
///            ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+    (also of cl100k's kind)
///   qwen2    the same with \p{N} for \p{N}{1,3}
///   smollm   each \p{N} alone, and what lies between, as a text of its own, by gpt2's
///
/// \p{L} and \p{N} are the classes of utf8proc's version of Unicode, in which a code point that it
/// does not know is neither; \s is Unicode's White_Space.  U+017F is an s to (?i:'s).
enum class Pattern : std::uint8_t { gpt2, llama3, qwen2, smollm };

/// Where the piece ends that begins at byte `begin`, below utf8.size(), of a text that is UTF-8.
std::size_t piece_end(Pattern pattern, std::string_view utf8, std::size_t begin);

/// A UTF-8 text in Unicode's normalization form C.
std::string nfc(std::string_view utf8);

/// The character that stands for each byte in the files of byte-level vocabularies: itself for '!'
/// to '~' and, of Latin-1, U+00A1 to U+00AC and U+00AE to U+00FF; U+0100 and on for the others in
/// their order.
const std::array<char32_t, 256>& byte_characters();
/// Bytes in these characters, in UTF-8.
std::string written_token(std::string_view bytes);

}  // namespace xgrad::text
