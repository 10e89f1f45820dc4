#include "output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <xgrad/autograd/error.hpp>

namespace char_transformer {
namespace {

bool silent = false, is_quiet = false, verbose = false;
int first_error = 0;      // of standard output
bool err_is_read = true;  // as far as we know

/// An environment variable; empty if it is not set.
std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

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

void set_verbosity(bool quiet, bool more) {
  is_quiet = quiet;
  verbose = more;
}
bool is_verbose() { return verbose; }

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
  const std::string line = labelled(label, for_people(text, STDERR_FILENO));
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
  if (!silent && !is_quiet && write(text, stderr) == EPIPE)
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
  const std::string text = error.what();
  const std::size_t end = text.find(": ");
  const auto is_of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  const bool named = end != text.npos && end > 0 &&
                     std::ranges::all_of(std::string_view(text).substr(0, end), is_of_name);
  return named ? text.substr(end + 2) : text;
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
  const std::string_view force = variable("CLICOLOR_FORCE");
  const bool styles =
      variable("NO_COLOR").empty() &&
      ((!force.empty() && force != "0") || (can_redraw() && variable("CLICOLOR") != "0"));
  if (style == Style::plain || !styles)
    return std::string(text);
  const int code = style == Style::bold    ? 1
                   : style == Style::dim   ? 2
                   : style == Style::green ? 32
                                           : 31;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string format_si(double x, std::string_view unit) {
  const char* const prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  for (; prefix < 5 && x >= 999.5; ++prefix)
    x /= 1000;
  return fmt::format("{:.3g}{}{}{}", x, unit.starts_with(' ') ? "" : " ", prefixes[prefix], unit);
}

std::string format_duration(double seconds) {
  if (!(seconds < 1e9))
    return "years";
  const auto s = static_cast<unsigned long>(std::lround(seconds));
  if (s < 60)
    return fmt::format("{}s", s);
  if (s < 3600)
    return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 48 * 3600UL)
    return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

}  // namespace char_transformer
