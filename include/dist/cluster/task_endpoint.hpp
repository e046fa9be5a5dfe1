#pragma once

#include <string_view>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>
#include <dist/net/endpoint.hpp>

namespace dist {

/// Where something listens that is written as "host:port". Throws InvalidArgument that names `owner` (spec M25).
[[nodiscard]] net::Endpoint endpoint_at(std::string_view written, std::string_view owner);

/// Where a task of the cluster listens. Throws InvalidArgument for one without an address; `source` says where the cluster comes
/// from: "TF_CONFIG".
[[nodiscard]] net::Endpoint task_endpoint(const ClusterSpec& cluster, Task task, std::string_view source);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/task_endpoint.ipp>
#endif
