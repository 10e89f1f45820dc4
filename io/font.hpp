#pragma once
// The small font that pictures are lettered with: ASCII in dots, each character in a box of 5 by 9
// (seven rows above the line it stands on, two below).

#include <cstddef>
#include <string>
#include <string_view>

namespace xgrad::io {

constexpr std::size_t glyph_width = 5, glyph_height = 9;
constexpr std::size_t glyph_ascent = 7;  ///< the height of capitals and digits

/// Whether the dot at column x, row y of a character is black.  A character that the font does not
/// have is an empty box.
bool glyph_dot(char32_t character, std::size_t x, std::size_t y);

/// The characters of a text in UTF-8; U+FFFD for what is not.
std::u32string characters(std::string_view text);

}  // namespace xgrad::io
