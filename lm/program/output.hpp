#pragma once
// Standard output, for results, and standard error, for everything else, in a program that
// continues without readers; and stop requests: Ctrl-C, SIGTERM, a closed terminal, a closed pipe.

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <xgrad/autograd/fail.hpp>

#include "runs/format.hpp"

namespace program {

using runs::format_count, runs::format_duration, runs::format_si;
using xgrad::check, xgrad::fail, xgrad::FileError, xgrad::ValueError;

/// Opens unusable descriptors for closed standard streams, so that no file opened later takes their
/// place and gets the program's output.
void occupy_closed_streams();
/// From here on, tell() and draw() do nothing.
void be_quiet();
/// From here on, nothing is written: another process reports for this one.
void be_silent();

/// Writes a result to standard output, at once.  Names and texts may contain control sequences, so
/// for a terminal they are made printable.
void say(std::string_view text);
/// The errno of the first write to standard output that failed; 0 if none did.
int output_error();
/// The exit code of a program that has printed everything.  If output was lost and `code` is 0: 128
/// + SIGPIPE for a closed pipe, else 1, with a message.
int exit_code(int code);

/// Writes anything but a result to standard error, in the same way.
void tell(std::string_view text);
/// "Label: text" and a newline; following lines are indented.
std::string labelled(std::string_view label, std::string_view text);
/// tell() with control sequences for the terminal.
void draw(std::string_view text);
/// Writes a line to standard error, printable, with the program's name before it.
void warn(std::string_view text);

/// The message of an error of the library, without the function's name at its beginning.
std::string reason(const std::exception& error);

/// Whether a line on standard error can be redrawn: it is a terminal, and TERM does not exclude
/// that.
bool can_redraw();
/// The columns of standard error's terminal; 80 if unknown.
std::size_t terminal_width();

/// While one lives, the first SIGINT, SIGTERM or SIGHUP is recorded instead of ending the program,
/// and so is SIGPIPE; a second signal ends it at once.  A signal within 0.3 s of the first counts
/// as the same, because `timeout` and some shells send a signal twice.  A signal that the parent
/// process made it ignore, as nohup does, stays ignored.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// The recorded signal; 0 if there is none.
  int received() const;
};

/// "SIGINT".
const char* signal_name(int signal);

}  // namespace program
