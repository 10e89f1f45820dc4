#include "stop.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "output.hpp"

namespace char_transformer {
namespace {

constexpr std::int64_t twice_within = 300'000'000;  // nanoseconds
std::atomic<int> first_signal{0};
std::atomic<std::int64_t> first_time{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);  // so handlers may use them

void note(int signal) {
  const int before = errno;
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  std::int64_t first = 0;
  if (first_time.compare_exchange_strong(first, now)) {
    first_signal = signal;
    // For somebody who sits there: a step may take a minute.
    constexpr std::string_view said =
        "\nFinishing this step and saving; once more leaves at once.\n";
    if (::isatty(STDERR_FILENO) == 1 && ::write(STDERR_FILENO, said.data(), said.size()) < 0)
      errno = before;  // then nobody sees it
  } else if (now - first > twice_within) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);  // it comes when this handler returns
  }
  errno = before;
}

/// Sets a handler, unless the signal is ignored.
void handle(int signal, void (*handler)(int)) {
  if (std::signal(signal, handler) == SIG_IGN)
    std::signal(signal, SIG_IGN);
}

constexpr int stopping[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
/// A write that these would end fails instead: nobody reads the pipe, the file is too large.
constexpr int failing[] = {SIGPIPE, SIGXFSZ};

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  first_time = 0;
  for (const int signal : stopping)
    handle(signal, note);
  for (const int signal : failing)
    std::signal(signal, SIG_IGN);
}

StopSignals::~StopSignals() {
  if (first_signal != 0)  // the program is about to end, and what comes at once is still one
    return;
  for (const int signal : stopping)
    handle(signal, SIG_DFL);
  for (const int signal : failing)
    std::signal(signal, SIG_DFL);
}

int StopSignals::received() const {
  return first_signal != 0 ? first_signal.load() : nobody_reads() ? SIGPIPE : 0;
}

const char* signal_name(int signal) {
  return signal == SIGINT    ? "SIGINT"
         : signal == SIGTERM ? "SIGTERM"
         : signal == SIGHUP  ? "SIGHUP"
         : signal == SIGUSR1 ? "SIGUSR1"
                             : "a signal";
}

}  // namespace char_transformer
