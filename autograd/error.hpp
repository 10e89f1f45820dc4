#pragma once
// The errors that xgrad throws.  A message names the operation, its arguments and the broken rule.

#include <stdexcept>
#include <string>
#include <string_view>

namespace xgrad {

/// The text without anything that a terminal would obey.  Control characters, characters that
/// change the direction of writing, and bytes that are not UTF-8 become C++ escapes: `\x1b`,
/// `\u202e`.  Line ends and tabs stay.
std::string printable(std::string_view text);
/// The same in one line, for names from files: line ends and tabs are escaped, too, and the text is
/// cut at 200 bytes.
std::string printable_name(std::string_view name);

/// Base of every error that xgrad throws on purpose.  Messages are made printable, because they
/// quote files and arguments.
struct Error : std::runtime_error {
  explicit Error(std::string_view message) : std::runtime_error(printable(message)) {}
};

/// Shapes that do not fit an operation.
struct ShapeError : Error {
  using Error::Error;
};

/// Mixed dtypes, or a dtype that an operation does not accept.
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

/// A file or a text that cannot be read or written, or has the wrong content.
struct FileError : Error {
  using Error::Error;
};

}  // namespace xgrad
