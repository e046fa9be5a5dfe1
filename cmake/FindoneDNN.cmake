# Finds oneDNN as DNNL::dnnl, and sets oneDNN_FOUND and oneDNN_VERSION. oneDNN's own package file is not used:
# Debian's aborts the configuration without the OpenCL headers, which a CPU does not need.
include("${CMAKE_CURRENT_LIST_DIR}/DistOnePlace.cmake")
find_library(oneDNN_LIBRARY dnnl)
mark_as_advanced(oneDNN_LIBRARY)
dist_find_headers(oneDNN_INCLUDE_DIR "${oneDNN_LIBRARY}" dnnl.hpp)
dist_version_of(oneDNN_VERSION "${oneDNN_INCLUDE_DIR}" dnnl_version.h
                DNNL_VERSION_MAJOR DNNL_VERSION_MINOR DNNL_VERSION_PATCH)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR VERSION_VAR oneDNN_VERSION)
if(oneDNN_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${oneDNN_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${oneDNN_INCLUDE_DIR}")
endif()
