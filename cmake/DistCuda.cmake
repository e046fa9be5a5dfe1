# dist_nvcc_version(<out> <nvcc>): the version of nvcc, or empty if it does not print one.
function(dist_nvcc_version out nvcc)
  execute_process(COMMAND "${nvcc}" --version OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCH "release [0-9.]+, V([0-9.]+)" text "${text}")
  set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# dist_nvcc_has_cxx20(<out> <nvcc>): sets <out> to FALSE before CUDA 12 (Debian 12 has CUDA 11).
function(dist_nvcc_has_cxx20 out nvcc)
  dist_nvcc_version(version "${nvcc}")
  if(version VERSION_LESS 12)
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

# dist_find_nvcc(<variable>): finds an nvcc with C++20, as a cache entry.
function(dist_find_nvcc variable)
  include("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/DistCudaPlaces.cmake")
  find_program(${variable} nvcc HINTS ${dist_cuda_places} PATHS ${dist_cuda_toolkit} PATH_SUFFIXES bin
               VALIDATOR dist_nvcc_has_cxx20)
endfunction()

# dist_require_nvcc(): sets CMAKE_CUDA_COMPILER.
function(dist_require_nvcc)
  dist_find_nvcc(CMAKE_CUDA_COMPILER)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "nvcc of CUDA 12 or newer was not found. Install NVIDIA's package cuda-toolkit-13-0, or run in an "
                        "active Python environment: "
                        "pip install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 "
                        "nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85. Or set CMAKE_CUDA_COMPILER.")
  endif()
endfunction()

# dist_enable_cuda(): enables CUDA for programs that use dist::Cuda. enable_language alone does not find the compiler
# of PyPI's wheels, cannot link with it, and before CMake 3.26 has no C++20 for CUDA. The compiler is the first of
# CMAKE_CUDA_COMPILER, CUDACXX, nvcc under CMAKE_PREFIX_PATH, CUDA_HOME or CUDA_PATH, in the wheels of the active
# Python environment, on the PATH, and in /usr/local/cuda. The default of CMAKE_CUDA_ARCHITECTURES is this machine's
# GPUs, or sm_90 if it has none.
#
# A macro, because a language is enabled in the scope of the caller.
macro(dist_enable_cuda)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    dist_require_nvcc()
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    if(EXISTS /proc/driver/nvidia/gpus)
      set(CMAKE_CUDA_ARCHITECTURES native)
    else()
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
  endif()
  if(NOT CMAKE_CUDA_FLAGS MATCHES "-std=")
    string(APPEND CMAKE_CUDA_FLAGS " -std=c++20")
  endif()
  # The wheels store libraries in lib; nvcc searches lib64.
  if(CMAKE_CUDA_COMPILER)
    file(REAL_PATH "${CMAKE_CUDA_COMPILER}" dist_toolkit)
    cmake_path(GET dist_toolkit PARENT_PATH dist_toolkit)
    cmake_path(GET dist_toolkit PARENT_PATH dist_toolkit)
    if(EXISTS "${dist_toolkit}/lib/libcudart_static.a")
      string(APPEND CMAKE_CUDA_FLAGS " -L${dist_toolkit}/lib")
    endif()
  endif()
  enable_language(CUDA)
  unset(dist_toolkit)
endmacro()
