# Sets dist_cuda_places: where a part of CUDA is looked for before the system's folders, and dist_cuda_toolkit, where it is
# looked for after them. Wheels of PyPI lie in the active Python environment.
file(GLOB dist_cuda_wheels "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/cu13"
     "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/cudnn"
     "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/nccl")
set(dist_cuda_places $ENV{CUDA_HOME} $ENV{CUDA_PATH} ${dist_cuda_wheels})
set(dist_cuda_toolkit /usr/local/cuda)
unset(dist_cuda_wheels)

# dist_find_cuda_library(<target> <variable> <file of the wheel>): finds a shared library, for which PyPI's wheels have no
# name without a version, such as libnccl.so.2, and makes an imported target of it where it is there.
function(dist_find_cuda_library target variable file)
  string(REGEX REPLACE "^lib|[.]so.*" "" name "${file}")
  find_library(${variable} NAMES ${name} ${file} NAMES_PER_DIR HINTS ${ARGN} ${dist_cuda_places}
               PATHS ${dist_cuda_toolkit} PATH_SUFFIXES lib64 lib)
  mark_as_advanced(${variable})
  if(${variable} AND NOT TARGET ${target})
    add_library(${target} SHARED IMPORTED GLOBAL)
    cmake_path(GET ${variable} PARENT_PATH folder)
    # Where nvcc links from the same folder, CMake takes it for one of the system's, and tells programs nothing of it.
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${${variable}}"
                                               INTERFACE_LINK_OPTIONS "LINKER:-rpath,${folder}")
  endif()
endfunction()
