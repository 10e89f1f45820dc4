# xgrad_library(): one static library from all folders, under <xgrad/...> in the build tree as when installed.

# Flags of our own build, for the library, tests and examples; users of the package get none of them.
add_library(xgrad_flags INTERFACE)
target_compile_options(xgrad_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(XGRAD_WERROR)
  target_compile_options(xgrad_flags INTERFACE -Werror)
endif()
if(XGRAD_NATIVE)
  target_compile_options(xgrad_flags INTERFACE -march=native)
endif()
if(XGRAD_SANITIZE)
  target_compile_options(xgrad_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(xgrad_flags INTERFACE -fsanitize=address,undefined)
endif()

# Sources include <xgrad/autograd/...>: links make the source folders look as they do once installed.
set(XGRAD_FOLDERS autograd nn optim data io)
set(XGRAD_BUILD_INCLUDE "${CMAKE_CURRENT_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${XGRAD_BUILD_INCLUDE}/xgrad")
foreach(name IN LISTS XGRAD_FOLDERS ITEMS xgrad.hpp)
  file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}/${name}" "${XGRAD_BUILD_INCLUDE}/xgrad/${name}" SYMBOLIC)
endforeach()
