#pragma once

#include "ranks.hpp"

namespace char_transformer {

/// The program; its exit code.
int main(int argc, char** argv, Ranks& ranks);

}  // namespace char_transformer
