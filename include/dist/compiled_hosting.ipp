/// The parts of the library that are no templates and need jansson, OpenSSL and PMIx besides MPI: TF_CONFIG, and the
/// world that processes host themselves. A program compiles this as <dist/compiled_mpi.ipp>, of which it is the other
/// half; one that owns MPI needs that half alone.
#pragma once

#ifndef DIST_COMPILED_MPI
#error "define DIST_COMPILED_MPI for all sources of the program, or in CMake link dist::compiled_mpi, which does"
#include <dist_compiled>  // there is none, and only a missing header ends a compilation
#endif

#include <dist/cluster/cloud_resolvers.ipp>
#include <dist/cluster/mpi/world_host.ipp>
#include <dist/cluster/tf_config_resolver.ipp>
