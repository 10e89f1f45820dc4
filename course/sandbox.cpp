#include "course/sandbox.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/sanitizers.hpp>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace learn {
namespace {

void limit(int resource, std::size_t most) {
  const rlimit both{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  ::setrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &both);
}

// Whether a process waits for something other than a processor.  (Known on Linux alone.)
bool waits(pid_t id) {
  const std::string stat = read_file("/proc/" + std::to_string(id) + "/stat");
  const std::size_t name_ends = stat.rfind(") ");
  return name_ends != std::string::npos && stat.compare(name_ends + 2, 1, "S") == 0;
}

[[noreturn]] void be_child(const std::function<int()>& body, const Limits& limits) {
  ::setpgid(0, 0);
#if defined(__linux__)
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // Ctrl-C does not reach it
#endif
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (::chdir(limits.folder.c_str()) != 0)
    ::_exit(99);
  const int printed = ::open("printed.txt", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(printed, STDOUT_FILENO);
  ::dup2(printed, STDERR_FILENO);
  ::close(nothing);
  ::close(printed);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, std::size_t{64} << 20U);
  // (For all its threads.  The system counts roughly, and tends to overestimate.)
  limit(RLIMIT_CPU, static_cast<std::size_t>(1.25 * limits.computing) + 1);
  if (XGRAD_SANITIZER == 0)  // AddressSanitizer reserves terabytes of addresses
    limit(RLIMIT_AS, limits.memory);
  const int code = body();
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

Signals::Signals() {
  std::signal(SIGCHLD, SIG_DFL);
  ::sigemptyset(&awaited_);
  ::sigaddset(&awaited_, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN)
      ::sigaddset(&awaited_, signal);
  }
  ::sigprocmask(SIG_BLOCK, &awaited_, &before_);
}

Signals::~Signals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

Ended Signals::run(const std::function<int()>& body, const Limits& limits) const {
  using Seconds = std::chrono::duration<double>;
  std::fflush(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t id = ::fork();
  if (id < 0)
    throw xgrad::FileError(std::string("no process can be started: ") + std::strerror(errno));
  if (id == 0) {
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    be_child(body, limits);
  }
  ::setpgid(id, id);  // parent or child, whichever comes first

  Ended ended;
  double most = limits.seconds;
  int signal = SIGCHLD;
  for (siginfo_t info{};; info = {}) {
    ::waitid(P_PID, static_cast<id_t>(id), &info, WEXITED | WNOHANG | WNOWAIT);
    ended.seconds = Seconds(std::chrono::steady_clock::now() - start).count();
    if (ended.seconds >= most && most == limits.seconds && !waits(id))
      most *= 10;
    const double left = most - ended.seconds;
    if (info.si_pid == id || left <= 0 || (signal > 0 && signal != SIGCHLD)) {
      ended.how = info.si_pid == id        ? Ended::How::exited
                  : most == limits.seconds ? Ended::How::too_long
                                           : Ended::How::undecided;
      break;
    }
    const timespec wait{
        static_cast<time_t>(left),
        static_cast<long>((left - static_cast<double>(static_cast<time_t>(left))) * 1e9)};
    signal = ::sigtimedwait(&awaited_, nullptr, &wait);
  }
  ::kill(-id, SIGKILL);  // the group's number is not reused before waitpid()
  int status = 0;
  rusage used{};
  ::wait4(id, &status, 0, &used);
  ended.computed = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  if (signal > 0 && signal != SIGCHLD)
    throw Interrupted{signal};
  ended.printed = read_file(limits.folder + "/printed.txt");
  if (ended.how != Ended::How::exited)
    return ended;
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  if (WIFSIGNALED(status))
    ended.how = ended.code == SIGKILL && ended.computed > limits.computing ? Ended::How::too_long
                                                                           : Ended::How::signalled;
  return ended;
}

std::string read_file(const std::string& path) {
  std::string text(1'000'000, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace learn
