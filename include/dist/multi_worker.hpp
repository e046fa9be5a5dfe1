/// Several processes: MultiWorker and what its options and resolvers are made of. Needs the components mpi, json and
/// crypto.
#pragma once

#include <dist/core/config.hpp>  // first: says what a compiler must be

#include <dist/cluster.hpp>
#include <dist/comm/auto_all_reduce.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/comm/shared_window_all_reduce.hpp>
#include <dist/strategy/multi_worker.hpp>
