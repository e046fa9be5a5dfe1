#pragma once

#include <string>
#include <string_view>

#include <dist/cluster/address.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/task.hpp>
#include <dist/net/endpoint.hpp>

namespace dist {

/// Where something listens that is written as "host:port". Throws InvalidArgument that names `owner` (spec M25).
[[nodiscard]] inline net::Endpoint endpoint_at(std::string_view written, std::string_view owner) {
  const Address address = parse_address(written, owner);
  return {address.host, std::to_string(address.port)};
}

/// Where a task of the cluster listens. Throws InvalidArgument for one without an address; `source` says where the cluster comes
/// from: "TF_CONFIG".
[[nodiscard]] inline net::Endpoint task_endpoint(const ClusterSpec& cluster, Task task, std::string_view source) {
  return endpoint_at(cluster.task_address(task), text(to_string(task), " of ", source));
}

}  // namespace dist
