# Headers, exported targets (one file per component) and the package files that find_package(dist) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(dist_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/dist")

set(targets ${dist_components})
list(TRANSFORM targets PREPEND dist_)
foreach(target IN ITEMS dist ${targets})
  if(TARGET ${target})
    string(REGEX REPLACE "^dist_" "dist-" export ${target})
    install(TARGETS ${target} EXPORT ${export} FILE_SET HEADERS)
    install(EXPORT ${export} NAMESPACE dist:: DESTINATION "${dist_package_dir}" FILE ${export}-targets.cmake)
  endif()
endforeach()

write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/dist-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES cmake/dist-config.cmake cmake/FindoneDNN.cmake cmake/FindLibTorch.cmake cmake/FindGRPCCore.cmake cmake/Findhwloc.cmake cmake/Findjansson.cmake cmake/Findprotozero.cmake cmake/FindTurboJPEG.cmake
              cmake/FindPMIx.cmake cmake/FindDistMPI.cmake cmake/FindCUDAHeaders.cmake cmake/FindCUDNNHeaders.cmake
              cmake/FindNCCLHeaders.cmake cmake/FindNVTXHeaders.cmake cmake/FindPJRTHeaders.cmake
              cmake/FindDistThrust.cmake cmake/DistPrecompile.cmake cmake/DistCompiled.cmake cmake/DistCuda.cmake cmake/DistCudaPlaces.cmake cmake/DistOnePlace.cmake
              "${CMAKE_CURRENT_BINARY_DIR}/dist-config-version.cmake"
        DESTINATION "${dist_package_dir}")

# For builds without CMake. The file names the prefix relative to itself, so that an installation can be moved.
file(RELATIVE_PATH dist_to_prefix "/${CMAKE_INSTALL_DATADIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" dist_to_prefix "${dist_to_prefix}")
configure_file(cmake/dist.pc.in "${CMAKE_CURRENT_BINARY_DIR}/dist.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/dist.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig")
