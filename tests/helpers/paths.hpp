#pragma once
// Paths of files that tests read or run.

#include <string>

extern const std::string source_dir;     // the project
extern const std::string xgrad_program;  // the program; empty if it is not built
