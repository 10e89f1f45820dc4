#pragma once
// The version of xgrad: of these headers as macros, of the linked library as a function.  CMake
// reads it here.

#include <string>

#define XGRAD_VERSION_MAJOR 0
#define XGRAD_VERSION_MINOR 1
#define XGRAD_VERSION_PATCH 0

namespace xgrad {

/// The linked library's version, "0.1.0".  The macros are of the headers that a program includes.
std::string version();

}  // namespace xgrad
