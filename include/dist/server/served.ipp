#pragma once

#include <dist/cluster/task_endpoint.hpp>
#include <dist/server/served.hpp>

namespace dist::server {

DIST_INLINE std::vector<Served> served_by(const ClusterSpec& cluster, std::string_view source) {
  std::vector<Served> all;
  for (const Task task : cluster.tasks())
    if (task.type != TaskType::chief) all.push_back({task, task_endpoint(cluster, task, source)});
  return all;
}

}  // namespace dist::server
