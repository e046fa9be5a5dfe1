# Finds libtorch as LibTorch::LibTorch, and sets LibTorch_FOUND and LibTorch_VERSION. libtorch's own package file is
# not used: it requires the packages that libtorch was built with. A prefix is the folder with include/ and lib/, for
# example of PyPI's torch, or its share/cmake, which PyTorch's documentation uses as CMAKE_PREFIX_PATH.
include("${CMAKE_CURRENT_LIST_DIR}/DistOnePlace.cmake")
set(dist_torch_prefixes ${CMAKE_PREFIX_PATH} ${LibTorch_ROOT} $ENV{LibTorch_ROOT})
list(FILTER dist_torch_prefixes INCLUDE REGEX "/share/cmake/?$")
list(TRANSFORM dist_torch_prefixes APPEND "/../..")
find_library(LibTorch_LIBRARY torch_cpu HINTS ${dist_torch_prefixes} PATH_SUFFIXES lib)
unset(dist_torch_prefixes)
set(dist_torch_folder "")
if(LibTorch_LIBRARY)
  cmake_path(GET LibTorch_LIBRARY PARENT_PATH dist_torch_folder)
endif()
find_library(LibTorch_C10_LIBRARY c10 HINTS "${dist_torch_folder}")
unset(dist_torch_folder)
mark_as_advanced(LibTorch_LIBRARY LibTorch_C10_LIBRARY)
dist_find_headers(LibTorch_INCLUDE_DIR "${LibTorch_LIBRARY}" torch/csrc/api/include/torch/version.h)
dist_version_of(LibTorch_VERSION "${LibTorch_INCLUDE_DIR}" torch/csrc/api/include/torch/version.h
                TORCH_VERSION_MAJOR TORCH_VERSION_MINOR TORCH_VERSION_PATCH)

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
