# Finds hwloc as hwloc::hwloc, and sets hwloc_FOUND and hwloc_VERSION.
find_path(hwloc_INCLUDE_DIR hwloc.h)
find_file(hwloc_CONFIG_HEADER hwloc/autogen/config.h)  # Debian has it in another folder
find_library(hwloc_LIBRARY hwloc)
mark_as_advanced(hwloc_INCLUDE_DIR hwloc_CONFIG_HEADER hwloc_LIBRARY)
if(hwloc_CONFIG_HEADER)
  file(STRINGS "${hwloc_CONFIG_HEADER}" line REGEX "^#define HWLOC_VERSION \"[0-9.]+")
  string(REGEX REPLACE "^[^\"]*\"([0-9.]+).*" "\\1" hwloc_VERSION "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(hwloc REQUIRED_VARS hwloc_LIBRARY hwloc_INCLUDE_DIR VERSION_VAR hwloc_VERSION)
if(hwloc_FOUND AND NOT TARGET hwloc::hwloc)
  add_library(hwloc::hwloc UNKNOWN IMPORTED)
  set_target_properties(hwloc::hwloc PROPERTIES IMPORTED_LOCATION "${hwloc_LIBRARY}"
                                                INTERFACE_INCLUDE_DIRECTORIES "${hwloc_INCLUDE_DIR}")
endif()
