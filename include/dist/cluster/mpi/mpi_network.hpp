#pragma once

#include <string_view>

#include <dist/cluster/mpi/worker_group.hpp>
#include <dist/comm/mpi/agreement.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/environment.hpp>

namespace dist {

/// MPI, as the workers of a strategy reach each other through it (WorkersNetwork).
struct MpiNetwork {
  static constexpr std::string_view name = "MPI";

  using World = WorkerGroup;
  using Membership = mpi::Communicator;
  using Agreement = mpi::Agreement;
  /// What a program that owns MPI gives: `mpi::ref(comm)`.
  using Reference = mpi::CommRef;
};

}  // namespace dist
