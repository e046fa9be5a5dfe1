#pragma once

#include <string>

#include <dist/cluster/address.hpp>
#include <dist/cluster/task_endpoint.hpp>
#include <dist/core/text.hpp>

namespace dist {

DIST_INLINE net::Endpoint endpoint_at(std::string_view written, std::string_view owner) {
  const Address address = parse_address(written, owner);
  return {address.host, std::to_string(address.port)};
}
DIST_INLINE net::Endpoint task_endpoint(const ClusterSpec& cluster, Task task, std::string_view source) {
  return endpoint_at(cluster.task_address(task), concat(to_string(task), " of ", source));
}

}  // namespace dist
