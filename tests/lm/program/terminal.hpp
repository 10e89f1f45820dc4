#pragma once
// A pseudo-terminal for a program, and what it displays.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "helpers/catch.hpp"

class Terminal {
 public:
  /// Whether one can be opened; warns if not, as in a chroot without /dev/pts.
  static bool available() {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    const bool opens = master >= 0 && ::grantpt(master) == 0 && ::unlockpt(master) == 0;
    const char* const name = opens ? ::ptsname(master) : nullptr;
    const int slave = name == nullptr ? -1 : ::open(name, O_RDWR | O_NOCTTY);
    if (slave < 0)
      WARN("skipped: no pseudo-terminal can be opened here: " << std::strerror(errno));
    ::close(slave);
    ::close(master);
    return slave >= 0;
  }

  explicit Terminal(unsigned short columns)
      : columns_(columns), master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    REQUIRE(::grantpt(master_) == 0);
    REQUIRE(::unlockpt(master_) == 0);
    name_ = ::ptsname(master_);
    REQUIRE(::fcntl(master_, F_SETFL, O_NONBLOCK) == 0);
    REQUIRE(::fcntl(master_, F_SETFD, FD_CLOEXEC) == 0);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() { close(); }

  /// In a child process: makes this its only terminal.
  void take() const {
    ::setsid();
    const int slave = ::open(name_.c_str(), O_RDWR);
    const winsize size{.ws_row = 24, .ws_col = columns_, .ws_xpixel = 0, .ws_ypixel = 0};
    if (slave < 0 || ::ioctl(slave, TIOCSCTTY, 0) != 0 || ::ioctl(slave, TIOCSWINSZ, &size) != 0)
      ::_exit(97);
    ::setenv("TERM", "xterm", 1);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      ::dup2(slave, stream);
  }

  void type(std::string_view keys) const {
    REQUIRE(::write(master_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }

  /// Acts as a closed window does.
  void close() {
    if (master_ >= 0)
      ::close(master_);
    master_ = -1;
  }

  /// All bytes received.  The program blocks unless they are read in time.
  const std::string& bytes() {
    std::array<char, 4096> some{};
    for (ssize_t got = 0; (got = ::read(master_, some.data(), some.size())) > 0;)
      bytes_.append(some.data(), static_cast<std::size_t>(got));
    return bytes_;
  }

  /// The displayed rows.  Fails on control characters that our program does not use.
  std::vector<std::string> rows() {
    std::vector<std::string> rows(1);
    std::size_t column = 0;
    std::string_view rest = bytes();
    const auto next = [&](std::size_t n) { rest.remove_prefix(n); };
    for (; !rest.empty(); next(1)) {
      const char c = rest.front();
      if (c == '\r') {
        column = 0;
      } else if (c == '\n') {
        rows.emplace_back();
      } else if (rest.substr(0, 3) == "\x1b[K") {  // erases what follows in the row
        rows.back().resize(column, ' ');
        next(2);
      } else if (const std::size_t size = style(rest); size > 0) {
        next(size - 1);
      } else {
        if (c < ' ' || c > '~')
          FAIL("the byte " << int{c} << " before '" << rest.substr(1, 20) << "'");
        if (column == columns_) {
          rows.emplace_back();
          column = 0;
        }
        rows.back().resize(std::max(rows.back().size(), column + 1), ' ');
        rows.back()[column++] = c;
      }
    }
    return rows;
  }

 private:
  /// The length of a sequence at the text's beginning that changes colour or weight; 0 if there is
  /// none.
  static std::size_t style(std::string_view text) {
    if (!text.starts_with("\x1b["))
      return 0;
    const std::size_t end = text.find_first_not_of("0123456789", 2);
    return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
  }

  unsigned short columns_;
  int master_;
  std::string name_, bytes_;
};
