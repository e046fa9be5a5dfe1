# Finds the headers of cuBLAS and cuDNN as CUDNNHeaders::CUDNNHeaders. Sets CUDNNHeaders_FOUND and
# CUDNNHeaders_VERSION (of cuDNN). Programs link the libraries CUDNNHeaders::cuBLAS and CUDNNHeaders::cuDNN, which are
# defined if they are found.
include("${CMAKE_CURRENT_LIST_DIR}/DistCudaPlaces.cmake")
find_path(CUDNNHeaders_CUBLAS_DIR cublas_v2.h HINTS ${dist_cuda_places} PATHS ${dist_cuda_toolkit}
          PATH_SUFFIXES include)
find_path(CUDNNHeaders_INCLUDE_DIR cudnn_version.h HINTS ENV CUDNN_HOME ${dist_cuda_places} PATHS ${dist_cuda_toolkit}
          PATH_SUFFIXES include)
mark_as_advanced(CUDNNHeaders_CUBLAS_DIR CUDNNHeaders_INCLUDE_DIR)
if(CUDNNHeaders_INCLUDE_DIR)
  file(STRINGS "${CUDNNHeaders_INCLUDE_DIR}/cudnn_version.h" lines REGEX "^#define CUDNN_(MAJOR|MINOR) +[0-9]+")
  string(REGEX REPLACE ".*CUDNN_MAJOR +([0-9]+).*CUDNN_MINOR +([0-9]+).*" "\\1.\\2" CUDNNHeaders_VERSION "${lines}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNNHeaders REQUIRED_VARS CUDNNHeaders_INCLUDE_DIR CUDNNHeaders_CUBLAS_DIR
                                  VERSION_VAR CUDNNHeaders_VERSION)
if(CUDNNHeaders_FOUND AND NOT TARGET CUDNNHeaders::CUDNNHeaders)
  add_library(CUDNNHeaders::CUDNNHeaders INTERFACE IMPORTED)
  set_target_properties(CUDNNHeaders::CUDNNHeaders PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
                                                              "${CUDNNHeaders_CUBLAS_DIR};${CUDNNHeaders_INCLUDE_DIR}")
endif()
if(CUDNNHeaders_FOUND)
  dist_find_cuda_library(CUDNNHeaders::cuBLAS CUDNNHeaders_CUBLAS_LIBRARY libcublas.so.13)
  dist_find_cuda_library(CUDNNHeaders::cuDNN CUDNNHeaders_LIBRARY libcudnn.so.9 ENV CUDNN_HOME)
endif()
