# Finds gRPC's C core as gRPC::Core, and sets GRPCCore_FOUND and GRPCCore_VERSION (of the core, 29 in gRPC 1.51).
# gRPC's own package file is not used: it requires Protocol Buffers and the other dependencies of the C++ library.
include("${CMAKE_CURRENT_LIST_DIR}/DistOnePlace.cmake")
find_library(GRPCCore_LIBRARY grpc)
set(dist_grpc_folder "")
if(GRPCCore_LIBRARY)
  cmake_path(GET GRPCCore_LIBRARY PARENT_PATH dist_grpc_folder)
endif()
find_library(GRPCCore_GPR_LIBRARY gpr HINTS "${dist_grpc_folder}")
find_file(GRPCCore_PKG_CONFIG grpc.pc HINTS "${dist_grpc_folder}/pkgconfig"
          PATH_SUFFIXES lib/pkgconfig lib/${CMAKE_LIBRARY_ARCHITECTURE}/pkgconfig)
unset(dist_grpc_folder)
dist_find_headers(GRPCCore_INCLUDE_DIR "${GRPCCore_LIBRARY}" grpc/grpc.h)
mark_as_advanced(GRPCCore_LIBRARY GRPCCore_GPR_LIBRARY GRPCCore_PKG_CONFIG)
if(GRPCCore_PKG_CONFIG)
  file(STRINGS "${GRPCCore_PKG_CONFIG}" line REGEX "^Version:" LIMIT_COUNT 1)
  string(REGEX REPLACE "^Version: *([0-9.]+).*" "\\1" GRPCCore_VERSION "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GRPCCore REQUIRED_VARS GRPCCore_LIBRARY GRPCCore_GPR_LIBRARY GRPCCore_INCLUDE_DIR
                                  VERSION_VAR GRPCCore_VERSION)
if(GRPCCore_FOUND AND NOT TARGET gRPC::Core)
  add_library(gRPC::Core UNKNOWN IMPORTED)
  set_target_properties(gRPC::Core PROPERTIES IMPORTED_LOCATION "${GRPCCore_LIBRARY}"
                                              INTERFACE_LINK_LIBRARIES "${GRPCCore_GPR_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${GRPCCore_INCLUDE_DIR}")
endif()
