#include "terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace char_transformer {
namespace {

/// An environment variable; empty if it is not set.
std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool has_styles() {
  if (!variable("NO_COLOR").empty())
    return false;
  if (const auto force = variable("CLICOLOR_FORCE"); !force.empty() && force != "0")
    return true;
  return can_redraw() && variable("CLICOLOR") != "0";
}

/// The bytes of the character that begins with this byte.
std::size_t length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Nobody is asked how wide a character is: all but ASCII may be wide.
std::size_t width(char first) { return length(first) == 1 ? 1 : 2; }

}  // namespace

bool can_redraw() {
  const std::string_view term = variable("TERM");
  return ::isatty(STDERR_FILENO) == 1 && !term.empty() && term != "dumb";
}

std::size_t terminal_width(int stream) {
  struct winsize size {};
  return ::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

std::string styled(Style style, std::string_view text) {
  if (style == Style::plain || !has_styles())
    return std::string(text);
  const int code = style == Style::bold    ? 1
                   : style == Style::dim   ? 2
                   : style == Style::green ? 32
                                           : 31;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::size_t columns(std::string_view text) {
  std::size_t sum = 0;
  for (std::size_t at = 0; at < text.size(); at += length(text[at]))
    sum += width(text[at]);
  return sum;
}

std::string wrapped(std::string_view text, std::size_t most) {
  std::string result;
  std::size_t used = 0;
  while (!text.empty()) {
    // Blanks and the word after them.
    const std::size_t word = text.front() == '\n' ? 0 : text.find_first_not_of(' ');
    const std::size_t end = word == text.npos ? text.size() : text.find_first_of(" \n", word);
    const std::string_view piece = text.substr(0, text.front() == '\n' ? 1 : end);
    text.remove_prefix(piece.size());
    if (piece == "\n") {
      used = 0;
      result += piece;
    } else if (used > 0 && used + columns(piece) > most) {
      const std::string_view bare = piece.substr(std::min(word, piece.size()));
      used = columns(bare);
      (result += '\n') += bare;
    } else {
      used += columns(piece);
      result += piece;
    }
  }
  return result;
}

std::string cut_to_columns(std::string_view text, std::size_t most) {
  if (columns(text) <= most)
    return std::string(text);
  constexpr std::string_view more = "...";
  if (most < more.size())
    return std::string(most, '.');
  std::size_t at = 0;
  for (std::size_t used = more.size(); used + width(text[at]) <= most; at += length(text[at]))
    used += width(text[at]);
  return fmt::format("{}{}", text.substr(0, at), more);
}

}  // namespace char_transformer
