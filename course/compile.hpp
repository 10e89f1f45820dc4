#pragma once
// Compiles a learner's file and explains errors in plain words.

#include <string>

#include "course/sandbox.hpp"

namespace learn {

/// Compiles a source into a loadable library, with the compiler and the flags of xgrad's build,
/// unoptimised.  Returns an empty text, or one error: its place in the file, and its meaning.
/// Error if the compiler computes for more than `seconds`.
std::string compile(const Signals& signals, const std::string& source, const std::string& library,
                    const std::string& folder, double seconds);

/// printable(), and no longer than this many characters.
std::string shortened(const std::string& text, std::size_t most = 200);

}  // namespace learn
