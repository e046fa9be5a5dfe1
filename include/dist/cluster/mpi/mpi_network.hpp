#pragma once

#include <string_view>

#include <dist/cluster/mpi/worker_group.hpp>
#include <dist/comm/mpi/agreement.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/environment.hpp>

namespace dist {

/// MPI as the network between the workers of a strategy (WorkersNetwork).
struct MpiNetwork {
  /// For messages.
  static constexpr std::string_view name = "MPI";

  /// The processes, however they were started.
  using World = WorkerGroup;
  /// A membership in a group of them.
  using Membership = mpi::Communicator;
  /// The agreement on the end of the data.
  using Agreement = mpi::Agreement;
  /// The argument from a program that owns MPI: `mpi::ref(comm)`.
  using Reference = mpi::CommRef;
};

}  // namespace dist
