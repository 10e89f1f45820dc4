#include "output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <xgrad/autograd/error.hpp>

namespace char_transformer {
namespace {

int first_error = 0;
bool silent = false;

}  // namespace

void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) == -1 && errno == EBADF)
      ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the lowest that is free
}

void be_silent() { silent = true; }

void say(std::string_view text) {
  static const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  draw(terminal ? xgrad::printable(text) : text);
}

void draw(std::string_view text) {
  if (silent)
    return;
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if ((std::fflush(stdout) != 0 || !written) && first_error == 0)
    first_error = errno != 0 ? errno : EIO;
}

int output_error() { return first_error; }

void warn(std::string_view text) {
  if (silent)
    return;
  std::fflush(stdout);
  std::fprintf(stderr, "char_transformer: %s\n", xgrad::printable(text).c_str());
}

}  // namespace char_transformer
