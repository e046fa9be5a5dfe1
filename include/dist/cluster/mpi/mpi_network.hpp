#pragma once

#include <string_view>

#include <dist/cluster/mpi/worker_group.hpp>
#include <dist/comm/mpi/agreement.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/environment.hpp>

namespace dist {

/// MPI as the network between the workers of a strategy (WorkersNetwork).
struct MpiNetwork {
  static constexpr std::string_view name = "MPI";

  using World = WorkerGroup;
  using Membership = mpi::Communicator;
  using Agreement = mpi::Agreement;
  /// The argument from a program that owns MPI: `mpi::ref(comm)`.
  using Reference = mpi::CommRef;
};

}  // namespace dist
