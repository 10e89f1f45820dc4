# Writes the current commit as C++, if they have changed:
# cmake -DSOURCE=folder -DOUTPUT=build.cpp -P XgradCommit.cmake
set(commit "")
find_program(git git)
if(git AND EXISTS "${SOURCE}/.git")  # (not an enclosing project's)
  execute_process(COMMAND "${git}" describe --always --dirty --exclude * WORKING_DIRECTORY "${SOURCE}"
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
#include <xgrad/lm/program/commands.hpp>

namespace program {

const char* const build_commit = "@commit@";

}  // namespace program
]])
