#pragma once

#include <cstddef>
#include <string_view>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/mpi/worker_group.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>

namespace dist::detail {

/// Joins the world of the cluster's training tasks as worker number `worker`. The address of the first task alone is a
/// rendezvous. `source` names the origin of the cluster. Throws the errors of HostedWorld::join and
/// net::exchange_addresses.
[[nodiscard]] std::unique_ptr<WorldHandle> join_hosted_world(const ClusterSpec& cluster, std::size_t worker,
                                                             std::string_view source,
                                                             std::chrono::milliseconds start_timeout);

template <class R>
struct WorldHost {
  [[nodiscard]] static std::unique_ptr<WorldHandle> join(const ClusterSpec& cluster, std::size_t worker,
                                                         std::string_view source,
                                                         std::chrono::milliseconds start_timeout) {
    return join_hosted_world(cluster, worker, source, start_timeout);
  }
};

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/cluster/mpi/world_host.ipp>
#endif
