#include "json_lines.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <xgrad/autograd/error.hpp>
#include <xgrad/io/file.hpp>

namespace runs {
namespace {

using xgrad::io::Json;

Json parse(std::string_view text) {
  try {
    Json json = xgrad::io::parse_json(text);
    return json.as<xgrad::io::JsonObject>() != nullptr ? json : Json();
  } catch (const xgrad::ValueError&) {
    return {};
  }
}

/// With null in the place of numbers that are not finite, in texts as well.
std::string without_infinities(std::string text) {
  for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos;)
      text.replace(at, word.size(), "null");
  return text;
}

/// As readers of JSON Lines do, these are passed over.
bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

Json parse_line(const std::string& line, std::size_t longest) {
  if (line.size() > longest)
    return {};
  Json row = parse(line);
  return row.as<std::nullptr_t>() == nullptr ? row : parse(without_infinities(line));
}

}  // namespace

void for_each_line(const std::string& path, std::size_t longest, const Line& f) {
  const xgrad::io::ReadFile file(path);
  std::string part(1 << 20, ' '), rest;  // what was read last; the line that it ended in
  std::size_t number = 0;
  for (std::uint64_t at = 0; at < file.size(); at += part.size()) {
    part.resize(std::min<std::uint64_t>(part.size(), file.size() - at));
    file.read(part.data(), part.size(), at);
    std::string_view left = part;
    const auto take = [&](std::size_t end) {  // no more than shows that a line is too long
      rest += left.substr(0, std::min(end, longest + 1 - rest.size()));
    };
    for (std::size_t end = 0; (end = left.find('\n')) != left.npos; left.remove_prefix(end + 1)) {
      take(end);
      ++number;
      if (!is_blank(rest))
        f(number, parse_line(rest, longest));
      rest.clear();
    }
    take(left.size());
  }
  if (rest.size() > longest)
    f(++number, Json());
  if (rest.empty())
    return;
  if (const Json row = parse_line(rest, longest); row.as<std::nullptr_t>() == nullptr)
    f(++number, row);
}

Json read_object(const std::string& path) {
  constexpr std::uint64_t largest = 1 << 20;
  try {
    const xgrad::io::ReadFile file(path);
    if (file.size() > largest)
      return {};
    std::string text(file.size(), '\0');
    file.read(text.data(), text.size(), 0);
    return parse(text);
  } catch (const xgrad::FileError&) {
    return {};
  }
}

}  // namespace runs
