/// Several processes: MultiWorker and what its options and resolvers are made of. Needs MPI, PMIx, jansson and OpenSSL.
///
/// A program that owns MPI, and gives MultiWorker a communicator, needs MPI alone: it includes
/// <dist/strategy/multi_worker.hpp> and the headers of the policies that it names.
#pragma once

#include <dist/core/config.hpp>  // first: says what a compiler must be

#include <dist/cluster.hpp>
#include <dist/cluster/mpi/world_host.hpp>
#include <dist/comm/auto_all_reduce.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/core/error.hpp>  // what callers catch
#include <dist/strategy/multi_worker.hpp>
