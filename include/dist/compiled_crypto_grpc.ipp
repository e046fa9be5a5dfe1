/// The non-template code that needs OpenSSL and gRPC's C core; the CMake target dist::grpc compiles it. See
/// compiled.ipp.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::grpc, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

#include <dist/parameter_server.hpp>
#include <dist/rpc/grpc/channel.ipp>
#include <dist/rpc/grpc/server.ipp>

namespace dist {
DIST_PARAMETER_SERVER_TEMPLATES(, Grpc)
}  // namespace dist
