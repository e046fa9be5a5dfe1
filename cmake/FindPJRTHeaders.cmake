# Finds the header of PJRT, part of PyPI's xla-cpu-pjrt, in the active Python environment or in the folder of
# cmake/fetch_pjrt.cmake. Defines PJRTHeaders::PJRTHeaders, and sets PJRTHeaders_FOUND, PJRTHeaders_VERSION (of the
# interface) and PJRTHeaders_CPU_PLUGIN, the plugin of the same package. Programs load a plugin at run time, and link
# none.
#
# Some members of the interface have the name of their type, which is valid in C but an error in g++
# (-Wchanges-meaning). Programs therefore include a copy in the build folder, with ::type.
include("${CMAKE_CURRENT_LIST_DIR}/DistOnePlace.cmake")
file(GLOB wheels "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/xla_plugins/xla_cpu_pjrt")
find_path(PJRTHeaders_INCLUDE_DIR pjrt_c_api.h HINTS ${wheels} PATH_SUFFIXES include)
find_file(PJRTHeaders_CPU_PLUGIN xla_cpu_pjrt.so HINTS "${PJRTHeaders_INCLUDE_DIR}/.." NO_DEFAULT_PATH)
mark_as_advanced(PJRTHeaders_INCLUDE_DIR PJRTHeaders_CPU_PLUGIN)
dist_version_of(PJRTHeaders_VERSION "${PJRTHeaders_INCLUDE_DIR}" pjrt_c_api.h PJRT_API_MAJOR PJRT_API_MINOR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PJRTHeaders REQUIRED_VARS PJRTHeaders_INCLUDE_DIR VERSION_VAR PJRTHeaders_VERSION)
if(PJRTHeaders_FOUND AND NOT TARGET PJRTHeaders::PJRTHeaders)
  set(copy "${CMAKE_BINARY_DIR}/pjrt_headers")
  file(READ "${PJRTHeaders_INCLUDE_DIR}/pjrt_c_api.h" header)
  string(REPLACE "(fn_type) fn_type* fn_type" "(fn_type) ::fn_type* fn_type" header "${header}")
  set(before "")
  if(EXISTS "${copy}/pjrt_c_api.h")
    file(READ "${copy}/pjrt_c_api.h" before)
  endif()
  if(NOT header STREQUAL before)
    file(WRITE "${copy}/pjrt_c_api.h" "${header}")
  endif()
  add_library(PJRTHeaders::PJRTHeaders INTERFACE IMPORTED)
  set_target_properties(PJRTHeaders::PJRTHeaders PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${copy}"
                                                            INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
endif()
