# Finds the C core of gRPC as gRPC::Core, and sets GRPCCore_FOUND and GRPCCore_VERSION (of the core, 29 in gRPC 1.51). Not
# through gRPC's own package file, which asks for Protocol Buffers and everything else that the C++ library needs.
find_path(GRPCCore_INCLUDE_DIR grpc/grpc.h)
find_library(GRPCCore_LIBRARY grpc)
find_library(GRPCCore_GPR_LIBRARY gpr)
find_file(GRPCCore_PKG_CONFIG grpc.pc PATH_SUFFIXES lib/pkgconfig lib/${CMAKE_LIBRARY_ARCHITECTURE}/pkgconfig)
mark_as_advanced(GRPCCore_INCLUDE_DIR GRPCCore_LIBRARY GRPCCore_GPR_LIBRARY GRPCCore_PKG_CONFIG)
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
