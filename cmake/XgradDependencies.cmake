# What xgrad is built on.  All that is missing is named at once, with the command that installs it.
set(xgrad_packages Threads fmt xtl xtensor xtensor-blas xsimd utf8cpp nlohmann_json)
if(XGRAD_EXAMPLES)
  list(APPEND xgrad_packages CLI11)
endif()
if(XGRAD_TESTS)
  list(APPEND xgrad_packages Catch2)
endif()
set(xgrad_missing "")
foreach(package IN LISTS xgrad_packages)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND xgrad_missing ${package})
  endif()
endforeach()
list(APPEND CMAKE_PREFIX_PATH /opt/homebrew/opt/openblas /usr/local/opt/openblas)  # Homebrew links it nowhere else
foreach(library xxhash utf8proc)  # which have no package file everywhere
  string(TOUPPER ${library} upper)
  find_path(XGRAD_${upper}_INCLUDE ${library}.h)
  find_library(XGRAD_${upper}_LIBRARY ${library})
  if(NOT XGRAD_${upper}_INCLUDE OR NOT XGRAD_${upper}_LIBRARY)
    list(APPEND xgrad_missing ${library})
  endif()
endforeach()
find_package(BLAS QUIET)  # BLA_VENDOR asks for one of several, such as Intel10_64lp_seq or FLAME
if(NOT BLAS_FOUND)
  list(APPEND xgrad_missing BLAS)
endif()
if(xgrad_missing)
  list(JOIN xgrad_missing ", " xgrad_missing)
  message(FATAL_ERROR "xgrad: not found: ${xgrad_missing}. On Debian and Ubuntu, scripts/setup installs all that is needed.")
endif()

# The reference BLAS links just as well as a fast one and is many times slower, so say which one this is.
list(GET BLAS_LIBRARIES 0 xgrad_blas)
file(REAL_PATH "${xgrad_blas}" xgrad_blas)
message(STATUS "BLAS: ${xgrad_blas}")
if(NOT xgrad_blas MATCHES "openblas|blis|mkl|armpl|Accelerate")
  message(WARNING "${xgrad_blas} looks like the reference BLAS: matrix products will be slow. OpenBLAS (libopenblas-pthread-dev) is fast.")
endif()

if(xgrad_blas MATCHES "openblas-serial")
  message(WARNING "${xgrad_blas} can be called by one thread at a time: products will take turns. libopenblas-pthread-dev is faster.")
endif()

# Libraries that only our sources include, not our headers.
add_library(xgrad_private INTERFACE)
target_link_libraries(xgrad_private INTERFACE xtensor-blas utf8::cpp nlohmann_json::nlohmann_json)
target_include_directories(xgrad_private SYSTEM INTERFACE "${XGRAD_XXHASH_INCLUDE}" "${XGRAD_UTF8PROC_INCLUDE}")
