# Finds libtorch as LibTorch::LibTorch, and sets LibTorch_FOUND and LibTorch_VERSION. Not through libtorch's own package file,
# which asks for the packages that libtorch was built with.
find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/version.h)
find_library(LibTorch_LIBRARY torch_cpu)
find_library(LibTorch_C10_LIBRARY c10)
mark_as_advanced(LibTorch_INCLUDE_DIR LibTorch_LIBRARY LibTorch_C10_LIBRARY)
if(LibTorch_INCLUDE_DIR)
  file(STRINGS "${LibTorch_INCLUDE_DIR}/torch/csrc/api/include/torch/version.h" lines
       REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
  string(REPLACE ";" "." LibTorch_VERSION "${lines}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
                                  VERSION_VAR LibTorch_VERSION)
if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch UNKNOWN IMPORTED)
  set_target_properties(
    LibTorch::LibTorch PROPERTIES
    IMPORTED_LOCATION "${LibTorch_LIBRARY}" INTERFACE_LINK_LIBRARIES "${LibTorch_C10_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
endif()
