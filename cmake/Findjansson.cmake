# Finds jansson as jansson::jansson, and sets jansson_FOUND and jansson_VERSION. Debian's has no package file of CMake.
find_path(jansson_INCLUDE_DIR jansson.h)
find_library(jansson_LIBRARY jansson)
mark_as_advanced(jansson_INCLUDE_DIR jansson_LIBRARY)
if(jansson_INCLUDE_DIR)
  file(STRINGS "${jansson_INCLUDE_DIR}/jansson.h" line REGEX "^#define JANSSON_VERSION \"[0-9.]+")
  string(REGEX REPLACE "^[^\"]*\"([0-9.]+).*" "\\1" jansson_VERSION "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(jansson REQUIRED_VARS jansson_LIBRARY jansson_INCLUDE_DIR VERSION_VAR jansson_VERSION)
if(jansson_FOUND AND NOT TARGET jansson::jansson)
  add_library(jansson::jansson UNKNOWN IMPORTED)
  set_target_properties(jansson::jansson PROPERTIES IMPORTED_LOCATION "${jansson_LIBRARY}"
                                                    INTERFACE_INCLUDE_DIRECTORIES "${jansson_INCLUDE_DIR}")
endif()
