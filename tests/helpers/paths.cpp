#include "helpers/paths.hpp"

const std::string source_dir = XGRAD_SOURCE_DIR;
const std::string char_transformer = XGRAD_CHAR_TRANSFORMER;
