#pragma once
// Bytes that should be UTF-8 and need not be: those of tokens, which end anywhere.

#include <string>
#include <string_view>

namespace xgrad::text {

/// Whole characters of bytes that come piece by piece.  What is not UTF-8 becomes U+FFFD, once for
/// the longest part that could begin a character, as in Python's bytes.decode(errors="replace").
class Utf8Stream {
 public:
  /// The characters that more bytes complete.
  std::string add(std::string_view bytes);
  /// What is left at the end: nothing, or U+FFFD for a character that was cut off.
  std::string finish();

 private:
  std::string begun_;  // of a character
};

/// Bytes with U+FFFD for what is not UTF-8, by the same rule.
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace xgrad::text
