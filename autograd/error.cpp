#include <algorithm>
#include <iterator>
#include <utility>
#include "fail.hpp"

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

/// The character of the UTF-8 sequence at the beginning of `text`, and the sequence's length, which
/// is 0 if it is none (RFC 3629).
std::pair<char32_t, std::size_t> first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t n = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (text.size() < n)
    return {};
  char32_t c = n == 1 ? byte(0) : byte(0) & (0x7FU >> n);
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80)
      return {};
    c = c << 6 | (byte(i) & 0x3FU);
  }
  constexpr char32_t least[] = {0, 0x80, 0x800, 0x10000};
  const bool valid = byte(0) < 0xF8 && (n == 1 || byte(0) >= 0xC0) && c >= least[n - 1] &&
                     c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
  return {c, valid ? n : 0};
}

std::string printable(std::string_view text, std::string_view allowed) {
  std::string result;
  while (!text.empty()) {
    const auto [c, length] = first_character(text);
    if (length == 0)
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (harmless(c) || (c < 0x80 && allowed.find(static_cast<char>(c)) != allowed.npos))
      result += text.substr(0, length);
    else if (c < 0x100)
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned>(c));
    else
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<unsigned>(c));
    text.remove_prefix(std::max<std::size_t>(length, 1));
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

std::string in_columns(const std::vector<std::vector<std::string>>& rows, const char* alignments) {
  std::vector<std::size_t> widths(std::string_view(alignments).size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < widths.size(); ++c)
      widths[c] = std::max(widths[c], row.at(c).size());
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < widths.size(); ++c)
      text += alignments[c] == '<' ? fmt::format("{:<{}}  ", row[c], widths[c])
                                   : fmt::format("{:>{}}  ", row[c], widths[c]);
    text += row.back();
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

}  // namespace xgrad
