# Finds Thrust (CCCL) in a CUDA toolkit or in PyPI's wheels as DistThrust::DistThrust, and sets DistThrust_FOUND and
# DistThrust_VERSION. With the host compiler, algorithms without a policy run on the host, too.
include("${CMAKE_CURRENT_LIST_DIR}/DistCudaPlaces.cmake")
find_path(DistThrust_INCLUDE_DIR thrust/version.h HINTS ${dist_cuda_places} PATHS ${dist_cuda_toolkit}
          PATH_SUFFIXES include/cccl include)
mark_as_advanced(DistThrust_INCLUDE_DIR)
if(DistThrust_INCLUDE_DIR)
  file(STRINGS "${DistThrust_INCLUDE_DIR}/thrust/version.h" line REGEX "^# *define THRUST_VERSION +[0-9]+")
  string(REGEX REPLACE ".* ([0-9]+).*" "\\1" number "${line}")
  if(number)
    math(EXPR major "${number} / 100000")
    math(EXPR minor "${number} / 100 % 1000")
    set(DistThrust_VERSION "${major}.${minor}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DistThrust REQUIRED_VARS DistThrust_INCLUDE_DIR VERSION_VAR DistThrust_VERSION)
if(DistThrust_FOUND AND NOT TARGET DistThrust::DistThrust)
  add_library(DistThrust::DistThrust INTERFACE IMPORTED)
  set_target_properties(DistThrust::DistThrust PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${DistThrust_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS "$<$<COMPILE_LANGUAGE:CXX>:THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP>")
endif()
