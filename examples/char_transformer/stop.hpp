#pragma once
// Being asked to stop: Ctrl-C, or a polite kill.

namespace char_transformer {

/// While one lives, SIGINT and SIGTERM are noted instead of ending the program at once.  A second
/// one of the same kind ends it.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// The signal that came; 0 if none did.
  int received() const;
};

}  // namespace char_transformer
