#pragma once
// Text as code points: reading UTF-8 files, and UTF-8 to and from code points.

#include <string>
#include <string_view>

namespace xgrad::data {

/// The code points of a whole UTF-8 file, as Python's open(path, encoding="utf-8-sig").read() gives
/// them: a byte order mark at the start is dropped, and "\r\n" and "\r" become "\n".  Python's
/// reading is followed to the letter because the position of every later character, and so every
/// random batch, hangs on it. Throws FileError for a file that is missing, a directory, unreadable,
/// empty, or not UTF-8 (saying where).
std::u32string read_text(const std::string& path);

/// The code points of UTF-8 bytes; newlines stay as they are.  `what` names the bytes in the
/// message. Throws ValueError with the offset of the first byte that is not UTF-8.
std::u32string decode_utf8(std::string_view bytes, std::string_view what);

/// Code points as UTF-8.  Throws ValueError for a value that is not a code point (a surrogate, or
/// above U+10FFFF).
std::string encode_utf8(std::u32string_view text);

}  // namespace xgrad::data
