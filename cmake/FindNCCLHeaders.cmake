# Finds the header of NCCL in a toolkit, a system package or PyPI's wheels in the active Python environment. Defines
# NCCLHeaders::NCCLHeaders, and sets NCCLHeaders_FOUND and NCCLHeaders_VERSION. Programs link the library
# NCCLHeaders::NCCL, which is defined if it is found.
include("${CMAKE_CURRENT_LIST_DIR}/DistCudaPlaces.cmake")
find_path(NCCLHeaders_INCLUDE_DIR nccl.h HINTS ENV NCCL_HOME ${dist_cuda_places} PATHS ${dist_cuda_toolkit}
          PATH_SUFFIXES include)
mark_as_advanced(NCCLHeaders_INCLUDE_DIR)
if(NCCLHeaders_INCLUDE_DIR)
  file(STRINGS "${NCCLHeaders_INCLUDE_DIR}/nccl.h" lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE ".*NCCL_MAJOR +([0-9]+).*NCCL_MINOR +([0-9]+).*NCCL_PATCH +([0-9]+).*" "\\1.\\2.\\3"
         NCCLHeaders_VERSION "${lines}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCLHeaders REQUIRED_VARS NCCLHeaders_INCLUDE_DIR VERSION_VAR NCCLHeaders_VERSION)
if(NCCLHeaders_FOUND AND NOT TARGET NCCLHeaders::NCCLHeaders)
  add_library(NCCLHeaders::NCCLHeaders INTERFACE IMPORTED)
  set_target_properties(NCCLHeaders::NCCLHeaders PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${NCCLHeaders_INCLUDE_DIR}")
endif()
if(NCCLHeaders_FOUND)
  dist_find_cuda_library(NCCLHeaders::NCCL NCCLHeaders_LIBRARY libnccl.so.2 ENV NCCL_HOME)
endif()
