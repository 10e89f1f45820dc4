#pragma once
// Reading texts, and UTF-8 to and from code points.

#include <optional>
#include <string>
#include <string_view>
#include <xgrad/data/characters.hpp>
#include <xgrad/data/ids.hpp>

namespace xgrad::text {

/// A text as ids, and what they stand for.
struct Text {
  Characters characters;
  Ids ids;
};

/// A whole UTF-8 file, or pipe: its characters as Python's open(path, encoding="utf-8-sig").read()
/// gives them, where a byte order mark at the start is dropped, and "\r\n" and "\r" become "\n".
/// Python's reading is followed to the letter because the position of every later character, and so
/// every random batch, hangs on it.  Ids are those of `characters`, or without them of the text's
/// own.  The file is read once, piece by piece: nothing but the ids is held.  Throws FileError for
/// a file that is missing, a directory or device, unreadable, empty, or not UTF-8 (saying where,
/// and how to make UTF-8 of what seems to be UTF-16 or Latin-1), ValueError for characters that are
/// not known, as Characters::encode does.
Text read_text(const std::string& path, const std::optional<Characters>& characters = {});

/// The code points of UTF-8 bytes; newlines stay as they are.  `what` names the bytes in the
/// message.  Throws ValueError as read_text() does for what is not UTF-8.
std::u32string decode_utf8(std::string_view bytes, std::string_view what);

/// "\r\n" and a lone "\r" become "\n", as in Python's text mode.  Returns the last character that
/// there was; `before` is that of the part before, of a text that comes in several.
char32_t normalize_newlines(std::u32string& text, char32_t before = 0);

/// Code points as UTF-8.  Throws ValueError for a value that is not a code point (a surrogate, or
/// above U+10FFFF).
std::string encode_utf8(std::u32string_view text);

}  // namespace xgrad::text
