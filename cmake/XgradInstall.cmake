# install and find_package(xgrad).
include(CMakePackageConfigHelpers)
foreach(folder IN LISTS xgrad_folders xgrad_kit)
  install(DIRECTORY ${folder} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/xgrad"
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*declared.inc" PATTERN "discrete_members_defined.inc" PATTERN program EXCLUDE PATTERN mpi EXCLUDE)
endforeach()
install(FILES ${xgrad_headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/xgrad")
list(TRANSFORM xgrad_kit PREPEND xgrad_ OUTPUT_VARIABLE kit)
install(TARGETS xgrad xgrad_core xgrad_precompiled xgrad_headers xgrad_kernels xgrad_autograd xgrad_parallel xgrad_check xgrad_nn xgrad_optim xgrad_io ${kit} EXPORT xgrad
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
set(xgrad_package "${CMAKE_INSTALL_LIBDIR}/cmake/xgrad")
install(EXPORT xgrad NAMESPACE xgrad:: DESTINATION "${xgrad_package}" FILE xgradTargets.cmake)
configure_package_config_file(cmake/xgradConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/xgradConfig.cmake"
                              INSTALL_DESTINATION "${xgrad_package}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/xgradConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/xgradConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/xgradConfigVersion.cmake"
        DESTINATION "${xgrad_package}")
