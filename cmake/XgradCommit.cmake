# Writes the current commit and the compiler as C++, if they have changed:
# cmake -DSOURCE=folder -DCOMMIT=abc123 "-DCOMPILER=GCC 12.2.0" -DOUTPUT=build.cpp -P XgradCommit.cmake, the commit being that of sources without git
set(commit "${COMMIT}")
find_program(git git)
if(git AND EXISTS "${SOURCE}/.git")  # (not an enclosing project's)
  execute_process(COMMAND "${git}" describe --always --dirty --exclude * WORKING_DIRECTORY "${SOURCE}"
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
#include <xgrad/lm/program/commands.hpp>

namespace program {

const char* const build_commit = "@commit@";
const char* const build_compiler = "@COMPILER@";

}  // namespace program
]])
