#include "helpers/paths.hpp"

const std::string source_dir = XGRAD_SOURCE_DIR;
const std::string xgrad_program = XGRAD_PROGRAM;
