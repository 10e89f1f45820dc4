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
if(EXAMPLES)  # what is for shells lies where they look for it
  run("${WORK}/prefix/bin/char_transformer" --version)
  foreach(file man/man1/char_transformer.1 bash-completion/completions/char_transformer zsh/site-functions/_char_transformer
               fish/vendor_completions.d/char_transformer.fish)
    file(READ "${WORK}/prefix/share/${file}" text)
    if(NOT text MATCHES "learning")
      message(FATAL_ERROR "${file}: ${text}")
    endif()
  endforeach()
endif()
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/build" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_EXE_LINKER_FLAGS=${LINK_FLAGS}")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/consumer")
