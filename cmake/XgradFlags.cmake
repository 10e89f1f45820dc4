# xgrad_flags: compiler flags of the library, tests and examples.  Users of the package get none of them.
add_library(xgrad_flags INTERFACE)
target_compile_options(xgrad_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(xgrad_flags INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overread)  # false positives in its own std::string
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # its garbage collection would take a tenth of the time
  target_compile_options(xgrad_flags INTERFACE --param=ggc-min-heapsize=1000000)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(xgrad_flags INTERFACE -Wno-sign-conversion -Wno-implicit-float-conversion)  # for constants, where GCC does not warn
endif()
# Static libraries go into a user's shared library or Python module, too.  The tests and examples share the library's precompiled headers, so
# all get the flag; the second one keeps functions inlined as without it.
if(EMSCRIPTEN)  # a signed size of an array fits into its size_t; Clang 16 and newer take a captured structured binding for a shadow
  target_compile_options(xgrad_flags INTERFACE -Wno-shorten-64-to-32 -Wno-shadow)
else()
  target_compile_options(xgrad_flags INTERFACE -fPIC $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
endif()
if(XGRAD_WERROR)
  target_compile_options(xgrad_flags INTERFACE -Werror)
endif()
if(XGRAD_NATIVE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native xgrad_march)  # Arm's name is -mcpu
  target_compile_options(xgrad_flags INTERFACE $<IF:$<BOOL:${xgrad_march}>,-march=native,-mcpu=native>)
endif()
if(XGRAD_SANITIZE)
  target_compile_options(xgrad_flags INTERFACE -fsanitize=${XGRAD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(xgrad_flags INTERFACE -fsanitize=${XGRAD_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # instrumented <regex> triggers it
    target_compile_options(xgrad_flags INTERFACE -Wno-maybe-uninitialized)
  else()
    target_compile_options(xgrad_flags INTERFACE "-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/ignored.txt")
  endif()
endif()
if(XGRAD_FUZZ)  # no coverage of the tests' branches; the program: tests/fuzz/CMakeLists.txt
  target_compile_options(xgrad_flags INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:xgrad_is_test>>>:-fsanitize=fuzzer-no-link>)
endif()
# Compiles several sources of a target as one, because they parse and instantiate much the same.  Without precompiled headers
# (asan, tsan) only the tests: these builds check that each source of the library and the examples compiles alone.
function(xgrad_together target)
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS OR target MATCHES "tests")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()
