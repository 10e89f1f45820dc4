#include "stop.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "output.hpp"

namespace char_transformer {
namespace {

constexpr std::array stopping = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
/// A write that these would end fails instead: nobody reads the pipe, the file is too large.
constexpr std::array failing = {SIGPIPE, SIGXFSZ};
constexpr std::int64_t twice_within = 300'000'000;  // nanoseconds

/// For somebody who sits there: a step may take a minute.
constexpr std::string_view message =
    "\nFinishing this step and saving; once more leaves at once.\n";
std::atomic<bool> terminal{false};
std::atomic<int> first_signal{0};
std::atomic<std::int64_t> first_time{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);  // so handlers may use them

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void note(int signal) {
  const int before = errno;
  std::int64_t first = 0;
  if (first_time.compare_exchange_strong(first, now())) {
    first_signal = signal;
    if (terminal && ::write(STDERR_FILENO, message.data(), message.size()) < 0)
      errno = before;  // then nobody sees it
  } else if (now() - first > twice_within) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);  // it comes when this handler returns
  }
  errno = before;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  if (action.sa_handler == SIG_IGN)
    return;
  action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

std::array<struct sigaction, stopping.size() + failing.size()> previous;

/// Calls f with each signal and what was done with it before.
template <class F>
void for_each_signal(F&& f) {
  std::size_t i = 0;
  for (const int signal : stopping)
    f(signal, previous[i++], note);
  for (const int signal : failing)
    f(signal, previous[i++], SIG_IGN);
}

}  // namespace

StopSignals::StopSignals() {
  terminal = ::isatty(STDERR_FILENO) == 1;
  first_signal = 0;
  first_time = 0;
  for_each_signal([](int signal, struct sigaction& before, void (*handler)(int)) {
    ::sigaction(signal, nullptr, &before);
    handle(signal, handler);
  });
}

StopSignals::~StopSignals() {
  if (first_signal == 0)  // else the program is about to end, and what comes at once is still one
    for_each_signal([](int signal, const struct sigaction& before, void (*)(int)) {
      ::sigaction(signal, &before, nullptr);
    });
}

int StopSignals::received() const {
  if (const int signal = first_signal)
    return signal;
  return nobody_reads() ? SIGPIPE : 0;
}

const char* signal_name(int signal) {
  return signal == SIGINT    ? "SIGINT"
         : signal == SIGTERM ? "SIGTERM"
         : signal == SIGHUP  ? "SIGHUP"
         : signal == SIGUSR1 ? "SIGUSR1"
                             : "a signal";
}

}  // namespace char_transformer
