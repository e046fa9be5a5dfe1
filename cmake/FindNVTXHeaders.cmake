# Finds the headers of NVTX 3 in a toolkit or in PyPI's wheels in the active Python environment. Defines
# NVTXHeaders::NVTXHeaders, and sets NVTXHeaders_FOUND and NVTXHeaders_VERSION. There is no library: the headers load
# the active profiler, if any.
include("${CMAKE_CURRENT_LIST_DIR}/DistCudaPlaces.cmake")
find_path(NVTXHeaders_INCLUDE_DIR nvtx3/nvToolsExt.h HINTS ${dist_cuda_places} PATHS ${dist_cuda_toolkit}
          PATH_SUFFIXES include)
mark_as_advanced(NVTXHeaders_INCLUDE_DIR)
if(NVTXHeaders_INCLUDE_DIR)
  file(STRINGS "${NVTXHeaders_INCLUDE_DIR}/nvtx3/nvToolsExt.h" line REGEX "^# *define NVTX_VERSION +[0-9]+")
  string(REGEX REPLACE ".* ([0-9]+).*" "\\1" NVTXHeaders_VERSION "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NVTXHeaders REQUIRED_VARS NVTXHeaders_INCLUDE_DIR VERSION_VAR NVTXHeaders_VERSION)
if(NVTXHeaders_FOUND AND NOT TARGET NVTXHeaders::NVTXHeaders)
  add_library(NVTXHeaders::NVTXHeaders INTERFACE IMPORTED)
  set_target_properties(NVTXHeaders::NVTXHeaders PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${NVTXHeaders_INCLUDE_DIR}"
                                                            INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
endif()
