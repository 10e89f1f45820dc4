# What xgrad is built on.  A missing package is named with the command that installs it.
foreach(package IN ITEMS Threads fmt xtl xtensor xtensor-blas xsimd utf8cpp nlohmann_json)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "xgrad needs ${package}, which was not found. On Debian and Ubuntu scripts/setup installs all it needs.")
  endif()
endforeach()

# BLAS. The reference BLAS links just as well and is many times slower, so say which one this is.
find_library(XGRAD_BLAS_LIBRARY NAMES openblas blas REQUIRED)
file(REAL_PATH "${XGRAD_BLAS_LIBRARY}" xgrad_blas_file)
message(STATUS "BLAS: ${xgrad_blas_file}")
if(NOT xgrad_blas_file MATCHES "openblas|blis|mkl|armpl|accelerate")
  message(WARNING "BLAS is ${xgrad_blas_file}, which looks like the reference implementation: matrix products will be slow. "
                  "Install OpenBLAS (libopenblas-dev).")
endif()
