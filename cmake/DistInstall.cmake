# Headers, exported targets (one file per component) and the package files that find_package(dist) and pkg-config read.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(dist_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/dist")
# pkg-config files define the prefix relative to their own folder, so that an installation can be moved.
file(RELATIVE_PATH dist_to_prefix "/${CMAKE_INSTALL_DATADIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" dist_to_prefix "${dist_to_prefix}")

set(targets ${dist_components})
list(TRANSFORM targets PREPEND dist_)
set(core "")  # pkg-config name of the core, for the components
foreach(target IN ITEMS dist ${targets})
  if(NOT TARGET ${target})
    continue()
  endif()
  string(REGEX REPLACE "^dist_" "" component ${target})
  string(REGEX REPLACE "^dist_" "dist-" name ${target})
  install(TARGETS ${target} EXPORT ${name} FILE_SET HEADERS)
  install(EXPORT ${name} NAMESPACE dist:: DESTINATION "${dist_package_dir}" FILE ${name}-targets.cmake)
  set(modules ${dist_pkg_config_${component}})
  if(modules OR target STREQUAL "dist")
    set(definitions ${modules})
    set(libraries ${modules})
    list(FILTER definitions INCLUDE REGEX "^-D")
    list(FILTER libraries INCLUDE REGEX "^-l")
    list(FILTER modules EXCLUDE REGEX "^-")
    foreach(other IN LISTS dist_brings_${component})
      if(TARGET dist_${other})
        list(APPEND modules dist-${other})
      endif()
    endforeach()
    foreach(words IN ITEMS modules definitions libraries)
      list(JOIN ${words} " " ${words})
    endforeach()
    configure_file(cmake/dist.pc.in "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" @ONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig")
  endif()
  set(core dist)
endforeach()

write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/dist-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
file(GLOB modules CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cmake/Find*.cmake")
install(FILES cmake/dist-config.cmake cmake/packages.txt cmake/DistTable.cmake cmake/DistPrecompile.cmake
              cmake/DistCompiled.cmake cmake/DistCuda.cmake cmake/DistCudaPlaces.cmake cmake/DistOnePlace.cmake ${modules}
              "${CMAKE_CURRENT_BINARY_DIR}/dist-config-version.cmake"
        DESTINATION "${dist_package_dir}")
