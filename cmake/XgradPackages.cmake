# Packages, which CPack makes of a build with XGRAD_PACKAGES: for Debian and Ubuntu `xgrad` (the program, its shared libraries and
# the course) and `libxgrad-dev` (all that a compiler needs); for other Linux systems one archive, with the libraries of others
# inside.  `scripts/test packages` makes and tries them.
if(NOT CMAKE_SYSTEM_NAME STREQUAL Linux)
  message(FATAL_ERROR "xgrad: XGRAD_PACKAGES is for Linux, not for ${CMAKE_SYSTEM_NAME}")
endif()
set(CPACK_PACKAGE_VENDOR "The xgrad authors")
set(CPACK_PACKAGE_CONTACT "${CPACK_PACKAGE_VENDOR}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_PACKAGE_FILE_NAME "xgrad-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_COMPONENTS_ALL xgrad libxgrad-dev)  # an archive has all components

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
file(STRINGS /etc/os-release release REGEX "^(ID|VERSION_ID)=")
list(TRANSFORM release REPLACE "^[A-Z_]+=\"?([^\"]*)\"?$" "\\1")
list(SORT release ORDER DESCENDING)  # debian 12, ubuntu 24.04
list(JOIN release "" release)
set(CPACK_DEBIAN_PACKAGE_RELEASE "1~${release}")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_XGRAD_PACKAGE_NAME xgrad)
set(CPACK_DEBIAN_XGRAD_PACKAGE_SECTION science)
set(CPACK_DEBIAN_XGRAD_PACKAGE_SUGGESTS "libxgrad-dev, g++")
set(CPACK_DEBIAN_XGRAD_DESCRIPTION
"The program xgrad trains character-level transformers, fine-tunes pretrained
models, lets them write, and draws their attention and their backward pass.
The course xgrad-learn goes from a slope to training, in twelve stages.")
set(CPACK_DEBIAN_LIBXGRAD-DEV_PACKAGE_NAME libxgrad-dev)
set(CPACK_DEBIAN_LIBXGRAD-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBXGRAD-DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_LIBXGRAD-DEV_PACKAGE_DEPENDS  # whose headers ours include; the shared libraries have linked the others
    "xgrad (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), libxtensor-dev, libxsimd-dev, libfmt-dev")
set(CPACK_DEBIAN_LIBXGRAD-DEV_PACKAGE_SUGGESTS "libxxhash-dev, libopenblas-dev, libdnnl-dev, libutf8proc-dev, libpcre2-dev")  # for pkg-config --static
set(CPACK_DEBIAN_LIBXGRAD-DEV_DESCRIPTION
"Headers, static libraries, and files for CMake and pkg-config: an autograd
engine with PyTorch's names and semantics, checks of gradients, layers,
optimizers, checkpoints. What it suggests is linked by pkg-config --static.")

# Static libraries beside the shared ones, of the same objects, which run on any processor.  A wheel has none.
if(NOT SKBUILD)
  foreach(layer kernels autograd parallel check nn optim io ${xgrad_kit})
    add_library(xgrad_${layer}_static STATIC $<TARGET_OBJECTS:xgrad_${layer}>)
    set_target_properties(xgrad_${layer}_static PROPERTIES OUTPUT_NAME xgrad_${layer} LINKER_LANGUAGE CXX)
    install(TARGETS xgrad_${layer}_static ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libxgrad-dev)
  endforeach()
endif()

find_program(GZIP gzip REQUIRED)
foreach(component ${CPACK_COMPONENTS_ALL})
  install(FILES LICENSE RENAME copyright DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${component}" COMPONENT ${component})
endforeach()
set(manual "${CMAKE_CURRENT_BINARY_DIR}/xgrad.1.gz")
add_custom_command(OUTPUT "${manual}" DEPENDS xgrad_program scripts/manual VERBATIM
                   COMMAND sh -c "\"$1\" \"$2\" | \"$3\" -9n > \"$4\"" sh "${PROJECT_SOURCE_DIR}/scripts/manual" $<TARGET_FILE:xgrad_program> "${GZIP}" "${manual}")
add_custom_target(manual ALL DEPENDS "${manual}")
install(FILES "${manual}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT xgrad)

# Libraries of others in the archive, as auditwheel puts them into the wheel, and their licences.
list(TRANSFORM xgrad_kit REPLACE "(.+)" "$<TARGET_FILE:xgrad_\\1>" OUTPUT_VARIABLE ours)
list(APPEND ours $<TARGET_FILE:xgrad_io> $<TARGET_FILE:xgrad_kernels>)
foreach(component others licences)
  install(CODE "set(ours ${ours})\nset(libraries ${CMAKE_INSTALL_LIBDIR})\nset(installed ${component})" COMPONENT ${component})
  install(SCRIPT cmake/XgradOthers.cmake COMPONENT ${component})
endforeach()
include(CPack)
