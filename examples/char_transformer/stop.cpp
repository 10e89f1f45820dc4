#include "stop.hpp"

#include <csignal>

namespace char_transformer {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

void note(int signal) { stop_signal = signal; }

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int StopSignals::received() const { return stop_signal; }

}  // namespace char_transformer
