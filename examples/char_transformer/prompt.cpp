#include "prompt.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/data/text.hpp>

#include "output.hpp"

namespace char_transformer {
namespace {

using xgrad::FileError;
using xgrad::text::Characters;

/// Reads a stream to its end.
std::string read_all(std::FILE* stream, const std::string& name) {
  std::string text;
  std::vector<char> some(1 << 16);
  errno = 0;
  while (const std::size_t n = std::fread(some.data(), 1, some.size(), stream))
    text.append(some.data(), n);
  if (std::ferror(stream) != 0)
    throw FileError(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  return text;
}

std::string read_path(const std::string& path) {
  if (path == "-")
    return read_all(stdin, "standard input");
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    throw FileError(fmt::format("{}: no such file", path));
  // Some devices never end.
  if (!std::filesystem::is_regular_file(status) && !std::filesystem::is_fifo(status))
    throw FileError(fmt::format("{}: is neither a file nor a pipe", path));
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (file == nullptr)
    throw FileError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  return read_all(file.get(), path);
}

/// '\n', ' ', '!', 'A' to 'Z', and so on.
std::string listed(const Characters& characters) {
  constexpr std::size_t most = 40, shortest = 3;
  const std::u32string& list = characters.list();
  std::vector<std::string> parts;
  std::size_t first = 0, last = 0;
  for (; first < list.size() && parts.size() < most; first = last + 1) {
    last = first;
    while (last + 1 < list.size() && list[last + 1] == list[last] + 1)
      ++last;
    if (last - first + 1 < shortest)
      last = first;
    parts.push_back(shown(list[first]) +
                    (last > first ? fmt::format(" to {}", shown(list[last])) : ""));
  }
  return fmt::format("{}{}", fmt::join(parts, ", "),
                     first < list.size() ? fmt::format(" and {} more", list.size() - first) : "");
}

/// As text::read_text() reads it: with "\n" for other line ends, without a byte order mark.
std::string as_in_texts(const std::string& given) {
  std::string text;
  char before = 0;
  for (const char c : given) {
    if (c != '\n' || before != '\r')
      text += c == '\r' ? '\n' : c;
    before = c;
  }
  if (text.starts_with("\xEF\xBB\xBF"))
    text.erase(0, 3);
  return text;
}

}  // namespace

std::string read_prompt(const std::string& path) {
  std::string text = as_in_texts(read_path(path));
  if (text.ends_with('\n'))
    text.pop_back();
  return text;
}

xgrad::text::Ids encode_given(const std::string& what, const std::string& text,
                              const Characters& characters) {
  const std::u32string decoded = xgrad::text::decode_utf8(as_in_texts(text), what);
  try {
    return characters.encode(decoded);
  } catch (const xgrad::ValueError& error) {
    throw xgrad::ValueError(
        fmt::format("{}: {}; it knows {}", what, reason(error), listed(characters)));
  }
}

std::vector<std::int64_t> list_of(const xgrad::text::Ids& ids) {
  std::vector<std::int64_t> list(ids.size());
  ids.copy(0, ids.size(), list.data());
  return list;
}

xgrad::Indices as_row(std::span<const std::int64_t> ids) {
  auto list = xgrad::empty_array<std::int64_t>(xgrad::Shape{1, ids.size()});
  std::ranges::copy(ids, list.data());
  return xgrad::Indices(std::move(list));
}

xgrad::text::Ids encode_prompt(const std::string& what, const std::string& text,
                               const Characters& characters) {
  if (!text.empty())
    return encode_given(what, text, characters);
  if (characters.contains(U'\n'))
    return characters.encode(U"\n");
  return {0};
}

std::string shown(char32_t c) {
  for (const auto& [special, letter] : {std::pair{U'\n', 'n'}, {U'\t', 't'}, {U'\r', 'r'}})
    if (c == special)
      return fmt::format("'\\{}'", letter);
  if (c == U'\\' || c == U'\'')
    return fmt::format("'\\{}'", static_cast<char>(c));
  return fmt::format("'{}'", xgrad::printable_name(xgrad::text::encode_utf8({&c, 1})));
}

}  // namespace char_transformer
