#pragma once
// An untrusted process: it may loop, crash, print endlessly, or exhaust memory.

#include <csignal>
#include <cstddef>
#include <functional>
#include <string>

namespace learn {

struct Limits {
  double seconds = 10;  ///< of wall time; ten times as many if it is at work then
  double computing = 100;                      ///< seconds of a processor
  std::size_t memory = std::size_t{2} << 30U;  ///< of address space, in bytes; not under sanitizers
  std::string folder = ".";                    ///< its working folder, with "printed.txt"
};

struct Ended {
  /// too_long: it computed or waited too long; undecided: it was still at work.
  enum class How { exited, signalled, too_long, undecided } how = How::exited;
  int code = 0;         ///< the exit code, or the signal
  double seconds = 0;   ///< wall time
  double computed = 0;  ///< processor seconds of it and its children
  std::string printed;  ///< stdout and stderr, up to a megabyte
};

/// While one lives, SIGINT, SIGTERM and SIGHUP are deferred to run(), which throws Interrupted.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  /// Runs body() in a child process, until that ends or is killed; body's result is the exit code.
  /// stdin is empty.  All processes that it started are killed with it.  FileError if no process
  /// can be started.
  Ended run(const std::function<int()>& body, const Limits& limits) const;

 private:
  sigset_t awaited_{}, before_{};
};
struct Interrupted {
  int signal;
};

/// The file's first megabyte; empty if it cannot be read.
std::string read_file(const std::string& path);

}  // namespace learn
