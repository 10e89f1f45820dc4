# The portable build (XGRAD_NATIVE=OFF) on x86-64 Linux.  The layers with loops are shared libraries, compiled three
# times: for any processor (SSE2), for AVX2 and for AVX-512.  The last two are in glibc-hwcaps/ next to the first, where the
# dynamic loader (glibc 2.33 and newer) chooses the best for the processor.  A process loads exactly one, so it never runs an
# inline function that was compiled for a newer processor.
# Other systems have only the plain build.
set(xgrad_levels "")
if(NOT XGRAD_NATIVE AND NOT XGRAD_SANITIZE AND CMAKE_SYSTEM_NAME STREQUAL Linux AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  include(CheckCXXCompilerFlag)
  include(CheckCXXSymbolExists)
  check_cxx_compiler_flag(-march=x86-64-v4 xgrad_march_levels)  # GCC 11, Clang 12
  check_cxx_symbol_exists(__GLIBC__ features.h xgrad_glibc)
  if(xgrad_march_levels AND xgrad_glibc)
    set(xgrad_levels x86-64-v3 x86-64-v4)
  endif()
endif()

# Repeats `target`, a shared library with its properties, for each level.
function(xgrad_for_each_level target)
  get_target_property(directory ${target} LIBRARY_OUTPUT_DIRECTORY)
  if(NOT directory)
    set(directory "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  # A library's calls of its own functions stay within it: the program's copies of inline functions are of the plain build.
  target_link_options(${target} PRIVATE -Wl,-Bsymbolic-functions)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "$ORIGIN")
  foreach(level IN LISTS xgrad_levels)
    add_library(${target}_${level} SHARED)
    foreach(property SOURCES COMPILE_OPTIONS LINK_LIBRARIES LINK_OPTIONS SOVERSION INSTALL_RPATH_USE_LINK_PATH
                     PRECOMPILE_HEADERS UNITY_BUILD UNITY_BUILD_BATCH_SIZE)
      get_target_property(value ${target} ${property})
      if(value)
        set_property(TARGET ${target}_${level} PROPERTY ${property} "${value}")
      endif()
    endforeach()
    target_compile_options(${target}_${level} PRIVATE -march=${level})
    set_target_properties(${target}_${level} PROPERTIES OUTPUT_NAME ${target} LIBRARY_OUTPUT_DIRECTORY "${directory}/glibc-hwcaps/${level}"
                          BUILD_RPATH "$ORIGIN/../.." INSTALL_RPATH "$ORIGIN/../..")
    add_dependencies(${target} ${target}_${level})
    install(TARGETS ${target}_${level} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/glibc-hwcaps/${level}" NAMELINK_SKIP COMPONENT xgrad)
  endforeach()
endfunction()
