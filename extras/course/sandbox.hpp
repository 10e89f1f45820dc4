#pragma once
// A process that is not trusted: it may loop, crash, print without end, take all memory.

#include <cstddef>
#include <functional>
#include <string>

namespace learn {

struct Limits {
  double seconds = 10;                         ///< on the clock, from its start
  double computing = 100;                      ///< seconds of a processor
  std::size_t memory = std::size_t{2} << 30U;  ///< bytes
  bool processes = false;                      ///< it may start others, as a compiler does
  std::string folder = ".";                    ///< where it runs
};

struct Ended {
  enum class How { exited, signalled, too_long, too_large } how = How::exited;
  int code = 0;                   ///< the exit code, or the signal
  double seconds = 0;             ///< that it took
  std::string message;            ///< what it wrote to its file descriptor; see run()
  std::string printed;            ///< the first few thousand bytes of stdout and stderr
  std::size_t printed_bytes = 0;  ///< of all of it
};

/// While one lives, SIGINT, SIGTERM and SIGHUP let run() throw Interrupted, and do nothing else.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();
};
struct Interrupted {
  int signal;
};

/// Runs body(fd) in a child process, and returns when that has ended or was ended; its result is
/// the exit code.  What it writes to fd is the message, what it prints never gets there.  stdin is
/// empty.  All processes that it has started end with it.  FileError if there is no process to be
/// had.
Ended run(const std::function<int(int fd)>& body, const Limits& limits);

/// Writes all of a text, as far as that can be done.
void write_all(int fd, const std::string& text);

}  // namespace learn
