# Finds the headers of the CUDA runtime in a toolkit or in PyPI's wheels in the active Python environment. Defines
# CUDAHeaders::CUDAHeaders, and sets CUDAHeaders_FOUND and CUDAHeaders_VERSION. nvcc links the runtime, not this
# target.
include("${CMAKE_CURRENT_LIST_DIR}/DistCudaPlaces.cmake")
find_path(CUDAHeaders_INCLUDE_DIR cuda_runtime_api.h HINTS ${dist_cuda_places} PATHS ${dist_cuda_toolkit}
          PATH_SUFFIXES include)
mark_as_advanced(CUDAHeaders_INCLUDE_DIR)
if(CUDAHeaders_INCLUDE_DIR)
  file(STRINGS "${CUDAHeaders_INCLUDE_DIR}/cuda_runtime_api.h" line REGEX "^#define CUDART_VERSION +[0-9]+")
  string(REGEX REPLACE ".* ([0-9]+)[0-9][0-9][0-9].*" "\\1" major "${line}")
  string(REGEX REPLACE ".*[0-9]([0-9])[0-9].*" "\\1" minor "${line}")
  set(CUDAHeaders_VERSION "${major}.${minor}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDAHeaders REQUIRED_VARS CUDAHeaders_INCLUDE_DIR VERSION_VAR CUDAHeaders_VERSION)
if(CUDAHeaders_FOUND AND NOT TARGET CUDAHeaders::CUDAHeaders)
  add_library(CUDAHeaders::CUDAHeaders INTERFACE IMPORTED)
  set_target_properties(CUDAHeaders::CUDAHeaders PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CUDAHeaders_INCLUDE_DIR}")
endif()
