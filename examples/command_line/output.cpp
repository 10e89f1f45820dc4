#include "output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <xgrad/autograd/error.hpp>

namespace command_line {
namespace {

int first_error = 0;

}  // namespace

void print(std::string_view text) {
  static const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const std::string shown = terminal ? xgrad::printable(text) : std::string();
  if (terminal)
    text = shown;
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if ((std::fflush(stdout) != 0 || !written) && first_error == 0)
    first_error = errno != 0 ? errno : EIO;
}

int output_error() { return first_error; }

int exit_code(const std::string& program, int code) {
  print("");
  if (first_error != 0 && first_error != EPIPE)
    fmt::print(stderr, "{}: standard output could not be written: {}\n", program,
               std::strerror(first_error));
  if (first_error == 0 || code != 0)
    return code;
  return first_error == EPIPE ? 128 + SIGPIPE : 1;
}

}  // namespace command_line
