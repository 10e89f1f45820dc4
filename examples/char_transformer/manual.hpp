#pragma once
// What the man page says beyond the flags.

#include <vector>

#include "command_line/table.hpp"

namespace char_transformer {

std::vector<command_line::Section> manual();

}  // namespace char_transformer
