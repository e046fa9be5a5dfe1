#pragma once

#include <string_view>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>
#include <dist/net/endpoint.hpp>

namespace dist::server {

/// A process that serves a coordinator, and where it listens.
struct Served {
  Task task;
  net::Endpoint endpoint;

  bool operator==(const Served&) const = default;
};

/// The workers and the parameter servers of a cluster that validate_parameter_servers takes. `source` says where the cluster
/// comes from: "TF_CONFIG".
[[nodiscard]] std::vector<Served> served_by(const ClusterSpec& cluster, std::string_view source);

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/served.ipp>
#endif
