#pragma once

#include <cstddef>
#include <vector>

#include <dist/comm/hierarchical.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/node/communicator.hpp>
#include <dist/core/config.hpp>
#include <dist/device/shared_memory.hpp>

namespace dist::mpi {

/// Which members of a communicator share memory: they run on one host, see the same processes, and could map each
/// other's memory. A process that cannot, as in containers that share a host, is a node of its own.
struct FoundNodes {
  GroupLayout layout;                  ///< of the nodes, in the order of their lowest ranks
  std::vector<NodeGroup::Peer> peers;  ///< the other processes of this node, by rank
};

/// Finds the nodes of `world`, of which `mine` is this process's memory: with `separate` every process is a node of its
/// own. Eight bytes of `mine` at `stamp_at` are used on the way and zeroed again. A collective call.
[[nodiscard]] FoundNodes find_nodes(const Communicator& world, SharedMemory& mine, std::size_t stamp_at, bool separate);

}  // namespace dist::mpi

#ifndef DIST_COMPILED_MPI
#include <dist/comm/mpi/node_group.ipp>
#endif
