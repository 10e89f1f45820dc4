#include <utf8.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/text.hpp>

namespace xgrad::data {
namespace {

constexpr char32_t byte_order_mark = 0xFEFF;

std::string read_bytes(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  check<FileError>(std::filesystem::exists(status), "{}: no such file", path);
  // Opening a directory succeeds on Linux and reads nothing; without this it would pass for an
  // empty file.
  check<FileError>(!std::filesystem::is_directory(status), "{}: is a directory, not a text", path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail<FileError>("{}: cannot be opened: {}", path, std::strerror(errno));
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad())
    fail<FileError>("{}: reading failed after {} bytes", path, bytes.size());
  return bytes;
}

template <class E>
std::u32string decode(std::string_view bytes, std::string_view what) {
  const auto bad = utf8::find_invalid(bytes.begin(), bytes.end());
  if (bad != bytes.end())
    fail<E>("{}: not UTF-8 at byte {}: 0x{:02x} does not begin a valid character", what,
            bad - bytes.begin(), static_cast<unsigned char>(*bad));
  std::u32string text;
  text.reserve(bytes.size());
  utf8::unchecked::utf8to32(bytes.begin(), bytes.end(), std::back_inserter(text));
  return text;
}

/// "\r\n" and a lone "\r" become "\n", as in Python's text mode.
void normalize_newlines(std::u32string& text) {
  std::size_t to = 0;
  char32_t before = 0;
  for (const char32_t c : text) {
    if (c != U'\n' || before != U'\r')
      text[to++] = c == U'\r' ? U'\n' : c;
    before = c;
  }
  text.resize(to);
}

}  // namespace

std::u32string read_text(const std::string& path) {
  std::u32string text = decode<FileError>(read_bytes(path), path);
  if (text.starts_with(byte_order_mark))
    text.erase(0, 1);
  check<FileError>(!text.empty(), "{}: the file is empty", path);
  normalize_newlines(text);
  return text;
}

std::u32string decode_utf8(std::string_view bytes, std::string_view what) {
  return decode<ValueError>(bytes, what);
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

}  // namespace xgrad::data
