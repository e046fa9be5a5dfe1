# Sets dist_cuda_places, the folders to search for CUDA before the system's, and dist_cuda_toolkit, to search after
# them. PyPI's wheels are in the active Python environment.
file(GLOB dist_cuda_wheels "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/cu13"
     "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/cudnn"
     "$ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/nccl")
set(dist_cuda_places $ENV{CUDA_HOME} $ENV{CUDA_PATH} ${dist_cuda_wheels})
set(dist_cuda_toolkit /usr/local/cuda)
unset(dist_cuda_wheels)

# dist_find_cuda_library(<target> <variable> <file of the wheel>): finds a shared library, and adds an imported target
# if it exists. PyPI's wheels only have file names with a version, such as libnccl.so.2.
function(dist_find_cuda_library target variable file)
  string(REGEX REPLACE "^lib|[.]so.*" "" name "${file}")
  find_library(${variable} NAMES ${name} ${file} NAMES_PER_DIR HINTS ${ARGN} ${dist_cuda_places}
               PATHS ${dist_cuda_toolkit} PATH_SUFFIXES lib64 lib)
  mark_as_advanced(${variable})
  if(${variable} AND NOT TARGET ${target})
    add_library(${target} SHARED IMPORTED GLOBAL)
    cmake_path(GET ${variable} PARENT_PATH folder)
    # If nvcc also links from this folder, CMake treats it as a system folder and sets no rpath for it.
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${${variable}}"
                                               INTERFACE_LINK_OPTIONS "LINKER:-rpath,${folder}")
  endif()
endfunction()
