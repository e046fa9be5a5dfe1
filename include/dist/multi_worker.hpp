/// Training in several processes: MultiWorker, its options and its resolvers. Needs MPI, PMIx, jansson and OpenSSL.
///
/// A program that initialises MPI itself, and gives MultiWorker a communicator, needs only MPI: it includes
/// <dist/strategy/multi_worker.hpp> and the headers of its policies.
#pragma once

#include <dist/core/config.hpp>  // first: checks the compiler

#include <dist/cluster.hpp>
#include <dist/cluster/mpi/world_host.hpp>
#include <dist/comm/auto_all_reduce.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/core/error.hpp>  // the errors that callers catch
#include <dist/strategy/multi_worker.hpp>
