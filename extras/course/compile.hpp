#pragma once
// Compiling a learner's file, and what is wrong with it in plain words.

#include <string>

#include "course/sandbox.hpp"

namespace learn {

/// Compiles a source into a library that can be loaded, with the compiler and the flags that xgrad
/// was built with, unoptimised.  Empty if that went well; else what is wrong: one error, where it
/// is in the file, and what it means.  Error if the compiler computes for more than `seconds`.
std::string compile(const Signals& signals, const std::string& source, const std::string& library,
                    const std::string& folder, double seconds);

/// printable(), and no longer than this many characters.
std::string shortened(const std::string& text, std::size_t most = 200);

}  // namespace learn
