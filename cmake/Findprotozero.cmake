# Finds protozero as protozero::protozero, and sets protozero_FOUND and protozero_VERSION. Debian's package has no
# CMake package file.
include("${CMAKE_CURRENT_LIST_DIR}/DistOnePlace.cmake")
find_path(protozero_INCLUDE_DIR protozero/version.hpp)
mark_as_advanced(protozero_INCLUDE_DIR)
dist_version_of(protozero_VERSION "${protozero_INCLUDE_DIR}" protozero/version.hpp PROTOZERO_VERSION_STRING)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(protozero REQUIRED_VARS protozero_INCLUDE_DIR VERSION_VAR protozero_VERSION)
if(protozero_FOUND AND NOT TARGET protozero::protozero)
  add_library(protozero::protozero INTERFACE IMPORTED)
  set_target_properties(protozero::protozero PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${protozero_INCLUDE_DIR}")
endif()
