#pragma once
// Being asked to stop: Ctrl-C, a polite kill, a terminal that is closed, a reader who has gone.

namespace char_transformer {

/// While one lives, the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is noted instead of ending the
/// program, and so is output that nobody reads any more (SIGPIPE); a second signal ends it at once.
/// What comes within 0.3 s counts as the first: `timeout` and some shells send a signal twice.  A
/// signal that the program's parent had it ignore, as nohup does, stays ignored.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// The signal that came; 0 if none did.
  int received() const;
};

/// "SIGINT".
const char* signal_name(int signal);

}  // namespace char_transformer
