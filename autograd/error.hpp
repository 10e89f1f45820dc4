#pragma once
// The errors that xgrad throws.  A message names the operation, what it was given and the rule that
// was broken.

#include <stdexcept>
#include <string>
#include <string_view>

namespace xgrad {

/// A text without what a terminal would obey.  Control characters, those that turn the direction of
/// writing, and bytes that are not UTF-8 become what C++ writes for them: `\x1b`, `\u202e`.  Line
/// ends and tabs stay.
std::string printable(std::string_view text);
/// The same in one line, for names from files: line ends and tabs are written so, too, and what
/// goes beyond 200 bytes is left out.
std::string printable_name(std::string_view name);

/// Base of every error that xgrad throws on purpose.  Messages quote files and arguments of others,
/// so they are made printable.
struct Error : std::runtime_error {
  explicit Error(std::string_view message) : std::runtime_error(printable(message)) {}
};

/// Shapes that do not fit an operation.
struct ShapeError : Error {
  using Error::Error;
};

/// Mixed dtypes, or a dtype that an operation does not take.
struct DTypeError : Error {
  using Error::Error;
};

/// An argument outside its range: a dimension, an index, a probability, an option.
struct ValueError : Error {
  using Error::Error;
};

/// A graph that cannot be differentiated as asked: no graph, a freed graph, an unused input.
struct GraphError : Error {
  using Error::Error;
};

/// A value or a gradient that is not finite, under DetectAnomaly (anomaly.hpp).
struct AnomalyError : Error {
  using Error::Error;
};

/// A file, or a text, that cannot be read or written, or does not hold what it should.
struct FileError : Error {
  using Error::Error;
};

}  // namespace xgrad
