/// The non-template code that needs only MPI; the CMake target dist::mpi compiles it. See compiled.ipp.
#pragma once

#ifndef DIST_COMPILED
#error "define DIST_COMPILED for all source files of the program; in CMake, link dist::mpi, which does"
#include <dist_compiled>  // does not exist: only a missing header stops the compiler
#endif

// Kernels are compiled for all vector widths here, and selected at run time.
#ifndef DIST_DISPATCH_VECTORS
#define DIST_DISPATCH_VECTORS 1
#endif

#include <dist/cluster/mpi/mpi_network.hpp>
#include <dist/cluster/mpi/roles_resolver.ipp>
#include <dist/cluster/mpi/worker_group.ipp>
#include <dist/comm/mpi/agreement.ipp>
#include <dist/comm/mpi/api.ipp>
#include <dist/comm/mpi/communicator.ipp>
#include <dist/comm/mpi/environment.ipp>
#include <dist/comm/mpi/shutdown_barrier.ipp>
#include <dist/comm/mpi/shutdown_notice.ipp>
#include <dist/strategy/multi_worker.hpp>
#include <dist/strategy/workers.ipp>

template class dist::detail::WorkerProcesses<dist::MpiNetwork>;

template class dist::detail::MessageCollectives<dist::mpi::Communicator,
                                                dist::detail::MessageRing<dist::mpi::Communicator>>;
template class dist::detail::MessageCollectives<dist::mpi::Communicator,
                                                dist::detail::MessageChoice<dist::mpi::Communicator>>;
DIST_HIERARCHICAL_TEMPLATES(, dist::detail::RingOfMembers)
DIST_HIERARCHICAL_TEMPLATES(, dist::detail::ChoiceOfMembers)
DIST_MULTI_WORKER_TEMPLATES(, dist::RingAllReduce)
