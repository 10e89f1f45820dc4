#include "output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace program {
namespace {

bool silent = false, quiet = false;
int first_error = 0;      // of standard output
bool err_is_read = true;  // as far as we know

std::string for_people(std::string_view text, int stream) {
  return ::isatty(stream) == 1 ? xgrad::printable(text) : std::string(text);
}

/// Returns the errno of a failure; 0 if all was written.
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
      ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // takes the lowest number
}

void be_quiet() { quiet = true; }
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

std::string labelled(std::string_view label, std::string_view text) {
  std::string line = fmt::format("{:<7}", fmt::format("{}:", label));
  for (const char c : text)
    line += c == '\n' ? "\n       " : std::string(1, c);
  return line + "\n";
}

void draw(std::string_view text) {
  if (!silent && !quiet && write(text, stderr) == EPIPE)
    err_is_read = false;
}

void warn(std::string_view text) {
  if (silent)
    return;
  std::fflush(stdout);
  std::fprintf(stderr, "xgrad: %s\n", xgrad::printable(text).c_str());
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
  const char* const term = std::getenv("TERM");
  const std::string_view name = term == nullptr ? "" : term;
  return ::isatty(STDERR_FILENO) == 1 && !name.empty() && name != "dumb";
}

std::size_t terminal_width() {
  struct winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

constexpr std::int64_t twice_within = 300'000'000;  // nanoseconds
static std::atomic<int> first_signal{0};
static std::atomic<std::int64_t> first_time{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);  // handlers may use them

static void note(int signal) {
  const int before = errno;
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  std::int64_t first = 0;
  if (first_time.compare_exchange_strong(first, now)) {
    first_signal = signal;
    // Tells the user, because a step may take a minute.
    constexpr std::string_view said =
        "\nFinishing this step and saving; once more leaves at once.\n";
    if (::isatty(STDERR_FILENO) == 1 && ::write(STDERR_FILENO, said.data(), said.size()) < 0)
      errno = before;  // invisible to the interrupted code
  } else if (now - first > twice_within) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);  // delivered when this handler returns
  }
  errno = before;
}

/// Sets one handler for signals that stop the program, unless they are ignored, and one for those
/// that would kill it in place of failing a write: a closed pipe, a file that is too large.
static void handle(void (*stopping)(int), void (*failing)(int)) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, stopping) == SIG_IGN)
      std::signal(signal, SIG_IGN);
  for (const int signal : {SIGPIPE, SIGXFSZ})
    std::signal(signal, failing);
}

StopSignals::StopSignals() {
  first_signal = 0;
  first_time = 0;
  handle(note, SIG_IGN);
}

StopSignals::~StopSignals() {
  if (first_signal == 0)  // set before the program ends; a signal soon after is the same
    handle(SIG_DFL, SIG_DFL);
}

int StopSignals::received() const {
  const bool nobody_reads = first_error == EPIPE || !err_is_read;
  return first_signal != 0 ? first_signal.load() : nobody_reads ? SIGPIPE : 0;
}

const char* signal_name(int signal) {
  return signal == SIGINT    ? "SIGINT"
         : signal == SIGTERM ? "SIGTERM"
         : signal == SIGHUP  ? "SIGHUP"
                             : "a signal";
}

}  // namespace program
