# Installs xgrad into WORK, builds the consumer project against it and runs it.
file(REMOVE_RECURSE "${WORK}")
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
if(EXAMPLES)
  run("${WORK}/prefix/bin/char_transformer" --version)
endif()
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/build" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/consumer")

# One file in an empty folder, by the lines of the README.
find_program(BASH bash)
find_program(GXX g++)
if(BASH AND GXX AND EXISTS "${WORK}/prefix/lib/libxgrad_kernels.a")
  file(READ "${README}" readme)
  foreach(line "g[+][+] [^\n]*" "cmake_minimum_required[^`]*" "cmake -G Ninja -B build [^`]*")
    if(NOT readme MATCHES "[\n`](${line})")
      message(FATAL_ERROR "README.md has no line that begins with ${line}")
    endif()
    list(APPEND lines "${CMAKE_MATCH_1}")
  endforeach()
  list(GET lines 0 compile)
  string(REGEX REPLACE "^g[+][+]" "${COMPILER} $ENV{CXXFLAGS}" compile "${compile}")  # one C++ library in a program
  list(GET lines 1 project)
  list(GET lines 2 build)
  string(REGEX REPLACE "(~|[$]HOME)/.local" "${WORK}/prefix" script "set -e\n${compile}\n./mine\n${build}\nbuild/mine\n")
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
  if(NOT result EQUAL 0 OR NOT output MATCHES "total 3 parameters.*total 3 parameters")
    message(FATAL_ERROR "README.md, one file of your own: ${output}")
  endif()
endif()
