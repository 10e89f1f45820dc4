#pragma once
// Standard output and standard error of a program that goes on when nobody reads them.

#include <string_view>

namespace char_transformer {

/// Gives standard streams that are closed something that cannot be used, before a file that is
/// opened takes their place and what is printed goes there.
void occupy_closed_streams();

/// From here on, say(), draw() and warn() do nothing: another process speaks for this one.
void be_silent();

/// Writes to standard output, at once.  Names of files, and what a model has learnt to write, may
/// hold what a terminal obeys: there they are made printable.
void say(std::string_view text);

/// The same of text that a terminal is to obey.
void draw(std::string_view text);

/// The errno of the first write of these that failed; 0 if none did.
int output_error();

/// Writes a line to standard error, printable, with the program's name before it.
void warn(std::string_view text);

}  // namespace char_transformer
