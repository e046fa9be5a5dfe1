/// The parts of the library that are no templates and need MPI, and no other package. A program compiles this once, in a
/// source file that includes nothing else, and all its sources define DIST_COMPILED_MPI; one that does not own MPI
/// compiles <dist/compiled_hosting.ipp> as well. In CMake, linking dist::compiled_mpi does all of it.
#pragma once

#ifndef DIST_COMPILED_MPI
#error "define DIST_COMPILED_MPI for all sources of the program, or in CMake link dist::compiled_mpi, which does"
#include <dist_compiled>  // there is none, and only a missing header ends a compilation
#endif

#include <dist/cluster/mpi/mpi_network.hpp>
#include <dist/cluster/mpi/roles_resolver.ipp>
#include <dist/cluster/mpi/worker_group.ipp>
#include <dist/comm/mpi/api.ipp>
#include <dist/comm/mpi/communicator.ipp>
#include <dist/comm/mpi/environment.ipp>
#include <dist/comm/mpi/wait.ipp>
#include <dist/strategy/workers.ipp>

template class dist::detail::WorkerProcesses<dist::MpiNetwork>;
