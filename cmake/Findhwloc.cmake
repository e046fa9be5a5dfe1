# Finds hwloc as hwloc::hwloc, and sets hwloc_FOUND and hwloc_VERSION.
include("${CMAKE_CURRENT_LIST_DIR}/DistOnePlace.cmake")
find_library(hwloc_LIBRARY hwloc)
mark_as_advanced(hwloc_LIBRARY)
dist_find_headers(hwloc_INCLUDE_DIR "${hwloc_LIBRARY}" hwloc.h)
dist_version_of(hwloc_VERSION "${hwloc_INCLUDE_DIR}" hwloc.h HWLOC_VERSION)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(hwloc REQUIRED_VARS hwloc_LIBRARY hwloc_INCLUDE_DIR VERSION_VAR hwloc_VERSION)
if(hwloc_FOUND AND NOT TARGET hwloc::hwloc)
  add_library(hwloc::hwloc UNKNOWN IMPORTED)
  set_target_properties(hwloc::hwloc PROPERTIES IMPORTED_LOCATION "${hwloc_LIBRARY}"
                                                INTERFACE_INCLUDE_DIRECTORIES "${hwloc_INCLUDE_DIR}")
endif()
