#include <fmt/format.h>
#include <utf8.h>

#include <algorithm>
#include <iterator>
#include "error.hpp"

namespace xgrad {
namespace {

constexpr std::size_t longest_name = 200;

/// Whether a terminal only displays the character and does not obey it.
bool harmless(char32_t c) {
  const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  const bool direction = c == 0x061C || c == 0x200E || c == 0x200F ||
                         (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  const bool line_end = c == 0x2028 || c == 0x2029;
  return !control && !direction && !line_end;
}

std::string printable(std::string_view text, std::string_view allowed) {
  std::string result;
  const char* const end = text.data() + text.size();
  const char* valid_end = text.data();
  for (const char* at = text.data(); at != end;) {
    if (at == valid_end) {
      valid_end = utf8::find_invalid(at, end);
      if (at == valid_end) {
        fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(*at));
        valid_end = ++at;
        continue;
      }
    }
    const char* const begin = at;
    const auto c = static_cast<char32_t>(utf8::unchecked::next(at));
    if (harmless(c) || (c < 0x80 && allowed.find(static_cast<char>(c)) != allowed.npos))
      result.append(begin, at);
    else if (c < 0x100)
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned>(c));
    else
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<unsigned>(c));
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return printable(text, "\n\t"); }

std::string printable_name(std::string_view name) {
  if (name.size() <= longest_name)
    return printable(name, "");
  // Cuts between characters.
  std::size_t end = longest_name;
  while (end > longest_name - 4 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80)
    --end;
  return printable(name.substr(0, end), "") + "...";
}

}  // namespace xgrad
