#include <xgrad/data/utf8_stream.hpp>

namespace xgrad::text {
namespace {

enum class Found { character, beginning, nothing };

/// What bytes begin with: a character; the beginning of one, all that there is; or what is neither,
/// in its longest part that could begin a character.  Unicode 15, section 3.9, table 3-7.
Found begins(std::string_view bytes, std::size_t& length) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  const std::size_t whole = first < 0x80    ? 1
                            : first < 0xC2  ? 0
                            : first < 0xE0  ? 2
                            : first < 0xF0  ? 3
                            : first <= 0xF4 ? 4
                                            : 0;
  // The second byte's range keeps out what is too long, surrogates, and what is above U+10FFFF.
  unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (length = 1; length < whole; ++length, low = 0x80, high = 0xBF) {
    if (length == bytes.size())
      return Found::beginning;
    const auto byte = static_cast<unsigned char>(bytes[length]);
    if (byte < low || byte > high)
      return Found::nothing;
  }
  return whole > 0 ? Found::character : Found::nothing;
}

}  // namespace

std::string Utf8Stream::add(std::string_view bytes) {
  const std::string joined = begun_.append(bytes);
  begun_.clear();
  std::string characters;
  for (std::size_t i = 0, length = 0; i < joined.size(); i += length) {
    const Found found = begins(std::string_view(joined).substr(i), length);
    if (found == Found::beginning)
      begun_ = joined.substr(i);
    else
      characters.append(found == Found::character ? joined.substr(i, length) : "\uFFFD");
  }
  return characters;
}

std::string Utf8Stream::finish() {
  const bool cut = !begun_.empty();
  begun_.clear();
  return cut ? "\uFFFD" : "";
}

std::string replace_invalid_utf8(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.add(bytes);
  return text += stream.finish();
}

}  // namespace xgrad::text
