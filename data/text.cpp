#include <utf8.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/text.hpp>

namespace xgrad::text {
namespace {

constexpr char32_t byte_order_mark = 0xFEFF;

std::ifstream open_text(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  check<FileError>(std::filesystem::exists(status), "{}: no such file", path);
  // Opening a directory succeeds on Linux and reads nothing; without this it would pass for an
  // empty file.
  check<FileError>(!std::filesystem::is_directory(status), "{}: is a directory, not a text", path);
  // Some devices never end.
  check<FileError>(std::filesystem::is_regular_file(status) || std::filesystem::is_fifo(status),
                   "{}: is neither a file nor a pipe", path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail<FileError>("{}: cannot be opened: {}", path, std::strerror(errno));
  return file;
}

template <class E>
[[noreturn]] void fail_at(std::string_view what, std::size_t offset, char byte) {
  fail<E>("{}: not UTF-8 at byte {}: 0x{:02x} does not begin a valid character", what, offset,
          static_cast<unsigned char>(byte));
}

/// Where bytes cease to be UTF-8, or their end.
std::size_t valid_bytes(std::string_view bytes) {
  return static_cast<std::size_t>(utf8::find_invalid(bytes.begin(), bytes.end()) - bytes.begin());
}

std::u32string decode_valid(std::string_view bytes) {
  std::u32string text(bytes.size(), U'\0');
  const auto end = utf8::unchecked::utf8to32(bytes.begin(), bytes.end(), text.begin());
  text.erase(end, text.end());
  return text;
}

/// "\r\n" and a lone "\r" become "\n", as in Python's text mode.  `before` is the character before
/// this piece of a text, and then the last one of it.
void normalize_newlines(std::u32string& text, char32_t& before) {
  std::size_t to = 0;
  for (const char32_t c : text) {
    if (c != U'\n' || before != U'\r')
      text[to++] = c == U'\r' ? U'\n' : c;
    before = c;
  }
  text.resize(to);
}

}  // namespace

Text read_text(const std::string& path, const std::optional<Characters>& characters) {
  constexpr std::size_t piece = 65536, longest = 4;  // bytes; of a character
  std::ifstream file = open_text(path);
  Encoder encoder;
  std::string bytes;       // the next piece, after what is left of the one before
  std::size_t offset = 0;  // of bytes in the file
  char32_t before = 0;
  while (file) {
    const std::size_t left = bytes.size();
    bytes.resize(left + piece);
    file.read(bytes.data() + left, piece);
    bytes.resize(left + static_cast<std::size_t>(file.gcount()));
    if (file.bad())
      fail<FileError>("{}: reading failed after {} bytes", path, offset + bytes.size());
    const std::size_t valid = valid_bytes(bytes);
    // A character may go on in the next piece.
    if (valid < bytes.size() && (!file || bytes.size() - valid >= longest))
      fail_at<FileError>(path, offset + valid, bytes[valid]);
    std::u32string text = decode_valid(std::string_view(bytes).substr(0, valid));
    if (offset == 0 && text.starts_with(byte_order_mark))
      text.erase(0, 1);
    normalize_newlines(text, before);
    encoder.add(text);
    bytes.erase(0, valid);
    offset += valid;
  }
  check<FileError>(encoder.size() > 0, "{}: the file is empty", path);
  Characters known = characters ? *characters : encoder.characters();
  Ids ids = std::move(encoder).finish(known);
  return {std::move(known), std::move(ids)};
}

std::u32string decode_utf8(std::string_view bytes, std::string_view what) {
  if (const std::size_t valid = valid_bytes(bytes); valid < bytes.size())
    fail_at<ValueError>(what, valid, bytes[valid]);
  return decode_valid(bytes);
}

std::string encode_utf8(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t c : text) {
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
      fail<ValueError>("encode_utf8: 0x{:X} is not a code point", static_cast<std::uint32_t>(c));
    utf8::unchecked::append(c, std::back_inserter(bytes));
  }
  return bytes;
}

}  // namespace xgrad::text
