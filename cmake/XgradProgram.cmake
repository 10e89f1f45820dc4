# The program `xgrad` (lm/program).
# The folders of runs, for report and compare.
file(GLOB runs_sources CONFIGURE_DEPENDS lm/program/runs/*.cpp)
add_library(runs STATIC ${runs_sources})
target_link_libraries(runs PUBLIC xgrad::xgrad PRIVATE fmt::fmt xgrad_flags)
# All but main() is a library, because it is fuzzed as well (tests/fuzz).
file(GLOB program_sources CONFIGURE_DEPENDS lm/program/*.cpp)
list(FILTER program_sources EXCLUDE REGEX "/main.cpp$")
add_library(program_parts STATIC ${program_sources})
add_executable(xgrad_program lm/program/main.cpp)
target_link_libraries(xgrad_program PRIVATE program_parts)
foreach(target program_parts xgrad_program)
  target_link_libraries(${target} PRIVATE xgrad::xgrad runs CLI11::CLI11 fmt::fmt xgrad_flags)
endforeach()
foreach(target runs program_parts xgrad_program)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)  # the work is done in the library
  target_precompile_headers(${target} REUSE_FROM xgrad_check)
endforeach()
xgrad_together(runs)
xgrad_together(program_parts)
# Every build looks up the commit, and compiles one small file again if it has changed.
set(commit ${CMAKE_CURRENT_BINARY_DIR}/program_build.cpp)
string(REPLACE GNU GCC compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
add_custom_target(program_commit BYPRODUCTS ${commit} VERBATIM
                  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DCOMMIT=${XGRAD_COMMIT} -DOUTPUT=${commit} "-DCOMPILER=${compiler}"
                          -P ${PROJECT_SOURCE_DIR}/cmake/XgradCommit.cmake)
add_dependencies(program_parts program_commit)
target_sources(program_parts PRIVATE ${commit})
# The page that `xgrad playground` writes, if scripts/web has made it.
set(XGRAD_PLAYGROUND "${PROJECT_SOURCE_DIR}/build/web/playground.html" CACHE FILEPATH "The playground's page")
set(page "")
file(GLOB found CONFIGURE_DEPENDS "${XGRAD_PLAYGROUND}")  # a page that is made later is found by the next build
if(found)
  file(READ "${XGRAD_PLAYGROUND}" page)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${XGRAD_PLAYGROUND}")
endif()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/program_playground.cpp @ONLY CONTENT [[
#include <xgrad/lm/program/commands.hpp>

namespace program {

static const char page[] = R"xgrad(@page@)xgrad";
const std::string_view playground_page{page, sizeof(page) - 1};

}  // namespace program
]])
target_sources(program_parts PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/program_playground.cpp)
set_property(SOURCE ${CMAKE_CURRENT_BINARY_DIR}/program_playground.cpp PROPERTY COMPILE_OPTIONS -Wno-overlength-strings)
set_source_files_properties(${commit} ${CMAKE_CURRENT_BINARY_DIR}/program_playground.cpp PROPERTIES GENERATED ON SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
if(XGRAD_PACKAGES)  # libraries of others in an archive find each other by the program's path (DT_RPATH, not DT_RUNPATH)
  target_link_options(xgrad_program PRIVATE -Wl,--disable-new-dtags)
endif()
set_target_properties(xgrad_program PROPERTIES OUTPUT_NAME xgrad RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin
                      INSTALL_RPATH "${xgrad_origin}/../${CMAKE_INSTALL_LIBDIR}" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS xgrad_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL COMPONENT xgrad)
