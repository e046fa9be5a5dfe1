# Finds jansson as jansson::jansson, and sets jansson_FOUND and jansson_VERSION. Debian's package has no CMake package
# file.
include("${CMAKE_CURRENT_LIST_DIR}/DistOnePlace.cmake")
find_library(jansson_LIBRARY jansson)
mark_as_advanced(jansson_LIBRARY)
dist_find_headers(jansson_INCLUDE_DIR "${jansson_LIBRARY}" jansson.h)
dist_version_of(jansson_VERSION "${jansson_INCLUDE_DIR}" jansson.h JANSSON_VERSION)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(jansson REQUIRED_VARS jansson_LIBRARY jansson_INCLUDE_DIR VERSION_VAR jansson_VERSION)
if(jansson_FOUND AND NOT TARGET jansson::jansson)
  add_library(jansson::jansson UNKNOWN IMPORTED)
  set_target_properties(jansson::jansson PROPERTIES IMPORTED_LOCATION "${jansson_LIBRARY}"
                                                    INTERFACE_INCLUDE_DIRECTORIES "${jansson_INCLUDE_DIR}")
endif()
