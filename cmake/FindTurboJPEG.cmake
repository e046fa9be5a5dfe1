# Finds the TurboJPEG API of libjpeg-turbo as TurboJPEG::TurboJPEG, and sets TurboJPEG_FOUND and TurboJPEG_VERSION (of
# the API). libjpeg-turbo's own package file is not used: Debian's requires static libraries, too.
include("${CMAKE_CURRENT_LIST_DIR}/DistOnePlace.cmake")
find_library(TurboJPEG_LIBRARY turbojpeg)
mark_as_advanced(TurboJPEG_LIBRARY)
dist_find_headers(TurboJPEG_INCLUDE_DIR "${TurboJPEG_LIBRARY}" turbojpeg.h)
if(TurboJPEG_INCLUDE_DIR)
  file(STRINGS "${TurboJPEG_INCLUDE_DIR}/turbojpeg.h" line REGEX "tj3Init" LIMIT_COUNT 1)
  set(TurboJPEG_VERSION 2)
  if(line)
    set(TurboJPEG_VERSION 3)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TurboJPEG REQUIRED_VARS TurboJPEG_LIBRARY TurboJPEG_INCLUDE_DIR
                                  VERSION_VAR TurboJPEG_VERSION)
if(TurboJPEG_FOUND AND NOT TARGET TurboJPEG::TurboJPEG)
  add_library(TurboJPEG::TurboJPEG UNKNOWN IMPORTED)
  set_target_properties(TurboJPEG::TurboJPEG PROPERTIES IMPORTED_LOCATION "${TurboJPEG_LIBRARY}"
                                                        INTERFACE_INCLUDE_DIRECTORIES "${TurboJPEG_INCLUDE_DIR}")
endif()
