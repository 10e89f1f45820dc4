#pragma once
// Standard output, which gets a program's results: that these have not arrived is said in the end.

#include <string>
#include <string_view>

namespace command_line {

/// Writes to standard output, at once.  Names of files, and texts of strangers, may hold what a
/// terminal obeys: there they are made printable.
void print(std::string_view text);

/// The errno of the first write to standard output that failed; 0 if none did.
int output_error();

/// The exit code of a program that has printed all.  If something did not arrive, and `code` is 0:
/// 128 + SIGPIPE where nobody reads, else 1.  Says on standard error what went wrong, with the
/// program's name before it.
int exit_code(const std::string& program, int code);

}  // namespace command_line
