#pragma once
// System calls that fail at a chosen moment.

#include <cstddef>
#include <string>

/// While it lives, call number `k` (from 0) of this thread to any of open, write, fsync, rename,
/// pread and dlopen fails, as on a full or broken disk; and with `ever_after`, all that follow.
class FailingCall {
 public:
  explicit FailingCall(std::size_t k, bool ever_after = false);
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
  ~FailingCall();

  /// False where the C library's definitions take precedence (macOS).
  static bool possible();
  /// The name of the call that failed first; empty if none did.
  static std::string failed();
};
