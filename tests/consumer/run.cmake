# Builds the consumer project in WORK and runs it: with xgrad installed from BUILD or, if FETCHED, with its sources.
file(REMOVE_RECURSE "${WORK}")
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()
# Configures SOURCE as a user does, with these arguments, and reports a missing build type.
function(configure name)
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/${name}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
                          "-DFIRST_LAYER=${FIRST_LAYER}" ${ARGN}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${name}: ${output}")
  endif()
  string(REGEX MATCH "no +CMAKE_BUILD_TYPE +is +set" warned "${output}")
  if("${ARGN}" MATCHES "CMAKE_BUILD_TYPE" AND warned OR NOT "${ARGN}" MATCHES "CMAKE_BUILD_TYPE" AND NOT warned)
    message(FATAL_ERROR "${name}: the warning of a missing CMAKE_BUILD_TYPE: ${output}")
  endif()
endfunction()
file(READ "${README}" readme)
if(NOT readme MATCHES "\n# (include[(]FetchContent[)])\n# ([^\n]*)\n# ([^\n]*)\n")
  message(FATAL_ERROR "README.md does not say how to fetch xgrad")
endif()
file(WRITE "${WORK}/fetch.cmake" "${CMAKE_MATCH_1}\n${CMAKE_MATCH_2}\n${CMAKE_MATCH_3}\n")
if(FETCHED)  # as a part of the user's project, as shared libraries, which are installed with it
  configure(fetched -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG= "-DFETCH=${WORK}/fetch.cmake" "-DFETCHCONTENT_SOURCE_DIR_XGRAD=${FETCHED}" -DBUILD_SHARED_LIBS=ON)
  run("${CMAKE_COMMAND}" --build "${WORK}/fetched")
  run("${WORK}/fetched/consumer" "${WORK}/fetched/libplugin.so")
  run("${WORK}/fetched/consumer_of_shared" "${WORK}/fetched/libplugin.so")
  run("${WORK}/fetched/first_layer")
  run("${CMAKE_COMMAND}" --install "${WORK}/fetched" --prefix "${WORK}/moved")
  run("${CMAKE_COMMAND}" -E rename "${WORK}/fetched" "${WORK}/gone")
  run("${WORK}/moved/bin/consumer" "${WORK}/gone/libplugin.so")
  configure(against_shared -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_PREFIX_PATH=${WORK}/moved")
  run("${CMAKE_COMMAND}" --build "${WORK}/against_shared")
  run("${WORK}/against_shared/consumer" "${WORK}/against_shared/libplugin.so")
  configure(subdirectory -DSUBDIRECTORY=${FETCHED})
  return()
endif()

run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
file(READ "${WORK}/prefix/lib/cmake/xgrad/xgradTargets.cmake" targets)
if(NOT targets MATCHES "xgrad::kernels" OR targets MATCHES "[;:\"](/[^;\">]*[.](so|dylib))")
  message(FATAL_ERROR "The installed targets name a shared library by its path, which does not link with -static: ${CMAKE_MATCH_1}")
endif()
# The kit is a component if it was built; another name is none.
if(PROGRAM)
  run("${WORK}/prefix/bin/xgrad" --version)
  set(absent pages)
  set(components -DCOMPONENTS=lm)
else()
  set(absent lm)
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/absent" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
                        -DCOMPONENTS=${absent} "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
                RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "The +component +${absent} +is +not")
  message(FATAL_ERROR "find_package finds the component ${absent}: ${output}")
endif()
configure(build "-DCMAKE_PREFIX_PATH=${WORK}/prefix" ${components})
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/consumer" "${WORK}/build/libplugin.so")
run("${WORK}/build/consumer_of_shared" "${WORK}/build/libplugin.so")
run("${WORK}/build/consumer_without_rtti" "${WORK}/build/libplugin.so")
run("${WORK}/build/first_layer")
file(GLOB_RECURSE headers "${WORK}/build/*/cmake_pch.hxx")
if(NOT headers MATCHES "first_layer.dir/")
  message(FATAL_ERROR "first_layer has no precompiled header: ${headers}")
endif()

# One file in an empty folder, by the lines of the README.
find_program(BASH bash)
find_program(GXX g++)
if(BASH AND GXX AND EXISTS "${WORK}/prefix/lib/libxgrad_kernels.a")
  foreach(line "export PKG_CONFIG_PATH=[^`]*g[+][+] [^\n]*" "cmake_minimum_required[^`]*" "cmake -G Ninja -B build [^\n]*")
    if(NOT readme MATCHES "[\n`](${line})")
      message(FATAL_ERROR "README.md has no line that begins with ${line}")
    endif()
    list(APPEND lines "${CMAKE_MATCH_1}")
  endforeach()
  list(GET lines 0 compile)
  string(REGEX REPLACE "g[+][+]" "${COMPILER} $ENV{CXXFLAGS} $ENV{LDFLAGS}" compile "${compile}")  # one C++ library in a program
  find_library(STATIC_FMT NAMES libfmt.a)  # Debian's fmt has none
  if(STATIC_FMT)
    string(REPLACE "mine.cpp -o mine" "mine.cpp -o mine -static" static "${compile}")
    string(REPLACE "--cflags" "--static --cflags" static "${static}\n./mine")
  endif()
  list(GET lines 1 project)
  list(GET lines 2 build)
  string(REGEX REPLACE "(~|[$]HOME)/.local" "${WORK}/prefix" script "set -e\n${compile}\n./mine\n${build}\nbuild/mine\n${static}\n")
  file(WRITE "${WORK}/empty/CMakeLists.txt" "${project}")
  file(WRITE "${WORK}/empty/mine.cpp" "#include <iostream>
#include <xgrad/xgrad.hpp>
int main() {
  xgrad::nn::Linear layer(2, 1);
  xgrad::optim::AdamW optimizer(xgrad::nn::parameters(layer), {});
  mse_loss(layer(xgrad::ones({4, 2})), xgrad::zeros({4, 1})).backward();
  optimizer.step();
  xgrad::io::save_checkpoint(\"mine.safetensors\", layer, optimizer);
  std::cout << xgrad::nn::summary(layer);
}
")
  execute_process(COMMAND ${BASH} -c "${script}" WORKING_DIRECTORY "${WORK}/empty" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0 OR NOT output MATCHES "total 3 parameters.*total 3 parameters" OR output MATCHES "CMAKE_BUILD_TYPE")
    message(FATAL_ERROR "README.md, one file of your own: ${output}")
  endif()
endif()
