#include "output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <xgrad/autograd/error.hpp>

namespace char_transformer {
namespace {

bool silent = false;
Verbosity verbosity = Verbosity::usual;
int first_error = 0;      // of standard output
bool err_is_read = true;  // as far as we know

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

std::string for_people(std::string_view text, int stream) {
  return ::isatty(stream) == 1 ? xgrad::printable(text) : std::string(text);
}

/// The errno of what failed; 0 if all was written.
int write(std::string_view text, std::FILE* stream) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  if (std::fflush(stream) == 0 && written)
    return 0;
  return errno != 0 ? errno : EIO;
}

}  // namespace

void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) == -1 && errno == EBADF)
      ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the lowest that is free
}

void set_verbosity(Verbosity chosen) { verbosity = chosen; }
bool is_verbose() { return verbosity == Verbosity::verbose; }

void be_silent() { silent = true; }

void say(std::string_view text) {
  if (silent)
    return;
  const int error = write(for_people(text, STDOUT_FILENO), stdout);
  first_error = first_error != 0 ? first_error : error;
}

int output_error() { return first_error; }

int exit_code(int code) {
  say("");
  if (first_error != 0 && first_error != EPIPE)
    warn(fmt::format("standard output could not be written: {}", std::strerror(first_error)));
  if (first_error == 0 || code != 0)
    return code;
  return first_error == EPIPE ? 128 + SIGPIPE : 1;
}

void tell(std::string_view text) { draw(for_people(text, STDERR_FILENO)); }

void tell(std::string_view label, std::string_view text) {
  const std::string said = for_people(text, STDERR_FILENO);
  const std::string line =
      labelled(label, ::isatty(STDERR_FILENO) == 1
                          ? wrapped(said, std::max<std::size_t>(terminal_width(), 28) - 8)
                          : said);
  const std::size_t end = label.size() + 1;
  draw(styled(Style::bold, line.substr(0, end)) + line.substr(end));
}

std::string labelled(std::string_view label, std::string_view text) {
  std::string line = fmt::format("{:<7}", fmt::format("{}:", label));
  for (const char c : text)
    line += c == '\n' ? "\n       " : std::string(1, c);
  return line + "\n";
}

void draw(std::string_view text) {
  if (silent || verbosity == Verbosity::quiet)
    return;
  if (write(text, stderr) == EPIPE)
    err_is_read = false;
}

bool nobody_reads() { return first_error == EPIPE || !err_is_read; }

void warn(std::string_view text) {
  if (silent)
    return;
  std::fflush(stdout);
  std::fprintf(stderr, "char_transformer: %s\n", xgrad::printable(text).c_str());
}

std::string reason(const std::exception& error) {
  const std::string_view text = error.what();
  const std::size_t end = text.find(": ");
  const bool named = end != text.npos && end > 0 &&
                     std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end),
                                 [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return std::string(named ? text.substr(end + 2) : text);
}

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
