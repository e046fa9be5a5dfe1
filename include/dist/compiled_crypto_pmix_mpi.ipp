/// The non-template code for an MPI world that its processes form without mpirun, with OpenSSL, PMIx and MPI; the
/// CMake target dist::mpi compiles it. See compiled.ipp.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::mpi, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

#include <dist/cluster/mpi/world_host.ipp>
