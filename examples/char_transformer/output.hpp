#pragma once
// Standard output, which gets results, and standard error, which gets all else that is said, of a
// program that goes on when nobody reads them; and being asked to stop: Ctrl-C, a polite kill, a
// terminal that is closed, a reader who has gone.

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <xgrad/autograd/fail.hpp>

#include "runs/format.hpp"

namespace char_transformer {

using runs::format_count, runs::format_duration, runs::format_si;
using xgrad::check, xgrad::fail, xgrad::FileError, xgrad::ValueError;

/// Gives standard streams that are closed something that cannot be used, before a file that is
/// opened takes their place and what is printed goes there.
void occupy_closed_streams();
/// From here on, tell() and draw() do nothing.
void be_quiet();
/// From here on, nothing is written: another process speaks for this one.
void be_silent();

/// Writes a result to standard output, at once.  Names of files, and texts of strangers, may hold
/// what a terminal obeys: there they are made printable.
void say(std::string_view text);
/// The errno of the first write to standard output that failed; 0 if none did.
int output_error();
/// The exit code of a program that has printed all.  If something did not arrive, and `code` is 0:
/// 128 + SIGPIPE where nobody reads, else 1, and says why.
int exit_code(int code);

/// Writes what is not a result to standard error, in the same way.
void tell(std::string_view text);
/// "Label: text" and a newline; following lines are indented.
std::string labelled(std::string_view label, std::string_view text);
/// tell() of text that a terminal is to obey.
void draw(std::string_view text);
/// Writes a line to standard error, printable, with the program's name before it.
void warn(std::string_view text);

/// The message of an error of the library, without the name of the function that it begins with.
std::string reason(const std::exception& error);

/// Whether a line can be drawn over another on standard error: it is a terminal, and TERM does not
/// say that it cannot.
bool can_redraw();
/// The columns of the terminal that standard error goes to; 80 where nobody knows.
std::size_t terminal_width();

/// While one lives, the first SIGINT, SIGTERM or SIGHUP is noted instead of ending the
/// program, and so is output that nobody reads any more (SIGPIPE); a second signal ends it at once.
/// A signal within 0.3 s of the first counts as the same: `timeout` and some shells send a signal
/// twice.  A signal that the program's parent had it ignore, as nohup does, stays ignored.
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
