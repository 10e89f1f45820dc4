#include "course/sandbox.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/sanitizers.hpp>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace learn {
namespace {

constexpr std::size_t kept = 4000, kept_message = 100'000;
constexpr std::array stopping = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t stopped_by = 0;
std::array<struct sigaction, stopping.size()> before;

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0)
      throw xgrad::FileError(std::string("no pipe: ") + std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
    ::fcntl(read_end, F_SETFL, O_NONBLOCK);
    ::fcntl(read_end, F_SETFD, FD_CLOEXEC);
    ::fcntl(write_end, F_SETFD, FD_CLOEXEC);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(read_end);
    close_write_end();
  }
  void close_write_end() {
    if (write_end >= 0)
      ::close(std::exchange(write_end, -1));
  }
};

// What has come so far, `most` bytes of it kept; how many bytes came.  At most a megabyte at once,
// for somebody may write faster than we read.
std::size_t drain(int fd, std::string& text, std::size_t most) {
  std::array<char, 65536> bytes;
  std::size_t count = 0;
  while (count < 1'000'000) {
    const ssize_t n = ::read(fd, bytes.data(), bytes.size());
    if (n <= 0)
      break;
    count += static_cast<std::size_t>(n);
    if (text.size() < most)
      text.append(bytes.data(), std::min(static_cast<std::size_t>(n), most - text.size()));
  }
  return count;
}

// A process that ignores the signal at `most` gets SIGKILL where there is `more`.
void limit(int resource, std::size_t most, std::size_t more = 0) {
  const rlimit both{static_cast<rlim_t>(most), static_cast<rlim_t>(most + more)};
  ::setrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &both);
}

// Bytes of memory that a process uses; 0 if that is not known.
std::size_t memory_of(pid_t id) {
  const std::string path = "/proc/" + std::to_string(id) + "/statm";
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr)
    return 0;
  long all = 0, resident = 0;
  const int found = std::fscanf(file, "%ld %ld", &all, &resident);
  std::fclose(file);
  return found == 2 ? static_cast<std::size_t>(resident) *
                          static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))
                    : 0;
}

[[noreturn]] void be_child(const std::function<int(int)>& body, const Limits& limits, Pipe& printed,
                           Pipe& message) {
  ::setpgid(0, 0);
  for (const int signal : stopping)
    std::signal(signal, SIG_DFL);
#if defined(__linux__)
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it is out of reach of Ctrl-C
#endif
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(printed.write_end, STDOUT_FILENO);
  ::dup2(printed.write_end, STDERR_FILENO);
  ::close(nothing);
  ::close(printed.read_end);
  ::close(message.read_end);
  printed.close_write_end();
  if (::chdir(limits.folder.c_str()) != 0)
    ::_exit(99);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, std::size_t{256} << 20U);
  limit(RLIMIT_CPU, static_cast<std::size_t>(limits.computing) + 1, 1);  // of all its threads
  // (AddressSanitizer has terabytes of addresses, in this process alone.)
  if (XGRAD_SANITIZER == 0 || limits.processes)
    limit(RLIMIT_AS, limits.memory);
  const int code = body(message.write_end);
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

Signals::Signals() {
  stopped_by = 0;
  for (std::size_t i = 0; i < stopping.size(); ++i) {
    ::sigaction(stopping[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN)
      std::signal(stopping[i], [](int signal) { stopped_by = signal; });
  }
}

Signals::~Signals() {
  for (std::size_t i = 0; i < stopping.size(); ++i)
    ::sigaction(stopping[i], &before[i], nullptr);
}

void write_all(int fd, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR)
      return;
    at += n < 0 ? 0 : static_cast<std::size_t>(n);
  }
}

Ended run(const std::function<int(int fd)>& body, const Limits& limits) {
  Pipe printed, message;
  std::fflush(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t id = ::fork();
  if (id < 0)
    throw xgrad::FileError(std::string("no process can be started: ") + std::strerror(errno));
  if (id == 0)
    be_child(body, limits, printed, message);
  ::setpgid(id, id);  // whoever comes first
  printed.close_write_end();
  message.close_write_end();

  Ended ended;
  bool killed = false;
  for (bool over = false; !over;) {
    std::array<pollfd, 2> ends{{{printed.read_end, POLLIN, 0}, {message.read_end, POLLIN, 0}}};
    ::poll(ends.data(), ends.size(), 5);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(id), &info, WEXITED | WNOHANG | WNOWAIT);
    over = info.si_pid == id;
    if (over)  // and what it has started; its number is not given to others before it is waited for
      ::kill(-id, SIGKILL);
    ended.printed_bytes += drain(printed.read_end, ended.printed, kept);
    drain(message.read_end, ended.message, kept_message);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const bool too_large = memory_of(id) > limits.memory;
    ended.seconds = passed.count();
    if (!killed && !over && (passed.count() > limits.seconds || too_large || stopped_by != 0)) {
      ended.how = too_large ? Ended::How::too_large : Ended::How::too_long;
      killed = true;
      ::kill(-id, SIGKILL);
    }
    if (ends[0].revents == POLLHUP && ends[1].revents == POLLHUP && !over)
      ::usleep(5000);  // it has closed all: poll() no longer waits
  }
  int status = 0;
  ::waitpid(id, &status, 0);
  if (stopped_by != 0)
    throw Interrupted{stopped_by};
  if (!killed) {
    ended.how = WIFEXITED(status) ? Ended::How::exited : Ended::How::signalled;
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    if (ended.how == Ended::How::signalled &&
        (ended.code == SIGXCPU || (ended.code == SIGKILL && ended.seconds > limits.computing)))
      ended.how = Ended::How::too_long;
  }
  return ended;
}

}  // namespace learn
