#pragma once
// The errors that xgrad throws.  A message names the operation, what it was given and the rule that
// was broken.

#include <stdexcept>
#include <string>

namespace xgrad {

/// Base of every error that xgrad throws on purpose.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
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
