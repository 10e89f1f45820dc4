#pragma once
// A process that is not trusted: it may loop, crash, print without end, take all memory.

#include <csignal>
#include <cstddef>
#include <functional>
#include <string>

namespace learn {

struct Limits {
  double seconds = 10;  ///< on the clock, from its start; ten times as many if it is then at work
  double computing = 100;                      ///< seconds of a processor
  std::size_t memory = std::size_t{2} << 30U;  ///< bytes of addresses; not held under sanitizers
  std::string folder = ".";                    ///< where it runs, and "printed.txt" is made
};

struct Ended {
  /// too_long: it computes, or waits, for longer than it may; undecided: it was still at work.
  enum class How { exited, signalled, too_long, undecided } how = How::exited;
  int code = 0;         ///< the exit code, or the signal
  double seconds = 0;   ///< that it took
  double computed = 0;  ///< seconds of a processor, of it and what it has started
  std::string printed;  ///< stdout and stderr, at most a megabyte of them
};

/// While it lives, SIGINT, SIGTERM and SIGHUP wait for run(), which throws Interrupted.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  /// Runs body() in a child process, and returns when that has ended or was ended; its result is
  /// the exit code.  stdin is empty.  All processes that it has started end with it.  FileError if
  /// there is no process to be had.
  Ended run(const std::function<int()>& body, const Limits& limits) const;

 private:
  sigset_t awaited_{}, before_{};
};
struct Interrupted {
  int signal;
};

/// The file's bytes, at most a megabyte of them; none if it cannot be read.
std::string read_file(const std::string& path);

}  // namespace learn
