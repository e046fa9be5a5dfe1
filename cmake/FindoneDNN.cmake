# Finds oneDNN as DNNL::dnnl, and sets oneDNN_FOUND and oneDNN_VERSION. Not through oneDNN's own package file:
# Debian's stops the whole configuration on a machine without the OpenCL headers, which a CPU does not need.
find_path(oneDNN_INCLUDE_DIR dnnl.hpp)
find_library(oneDNN_LIBRARY dnnl)
mark_as_advanced(oneDNN_INCLUDE_DIR oneDNN_LIBRARY)
foreach(header oneapi/dnnl/dnnl_version.h dnnl_version.h)
  if(oneDNN_INCLUDE_DIR AND NOT oneDNN_VERSION AND EXISTS "${oneDNN_INCLUDE_DIR}/${header}")
    file(STRINGS "${oneDNN_INCLUDE_DIR}/${header}" lines REGEX "^#define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
    string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
    string(REPLACE ";" "." oneDNN_VERSION "${lines}")
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR VERSION_VAR oneDNN_VERSION)
if(oneDNN_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${oneDNN_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${oneDNN_INCLUDE_DIR}")
endif()
