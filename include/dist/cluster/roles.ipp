#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/roles.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/error.hpp>

namespace dist {

namespace detail {

DIST_INLINE void require_single_tasks(const ClusterSpec& cluster, std::string_view source) {
  for (const TaskType single : {TaskType::chief, TaskType::evaluator})
    if (cluster.num_tasks(single) > 1)
      throw InvalidArgument(concat(source, " lists more than one ", to_string(single)),
                            concat(cluster.num_tasks(single), " tasks; at most one may be there"),
                            single == TaskType::chief ? "List the others under 'worker'" : "List one evaluator");
}

DIST_INLINE void require_member(const ClusterSpec& cluster, Task task) {
  require_single_tasks(cluster, "The cluster");
  if (task.type != TaskType::evaluator || cluster.has(TaskType::evaluator))
    static_cast<void>(cluster.task_address(task));
}

}  // namespace detail

DIST_INLINE std::vector<Task> sync_tasks(const ClusterSpec& cluster) {
  std::vector<Task> tasks;
  for (const TaskType type : {TaskType::chief, TaskType::worker})
    for (const std::size_t index : cluster.task_indices(type)) tasks.push_back(Task{type, index});
  return tasks;
}

DIST_INLINE bool is_chief(const ClusterSpec& cluster, Task task) {
  if (cluster.empty()) return true;
  detail::require_member(cluster, task);
  switch (task.type) {
    case TaskType::chief:
    case TaskType::evaluator:
      return true;
    case TaskType::worker:
      return task.index == 0 && !cluster.has(TaskType::chief);
    case TaskType::parameter_server:
      return false;
  }
  return false;
}

DIST_INLINE bool should_checkpoint(const ClusterSpec& cluster, Task task) { return is_chief(cluster, task); }

DIST_INLINE bool should_save_summary(const ClusterSpec& cluster, Task task) { return is_chief(cluster, task); }

DIST_INLINE std::size_t worker_count(const ClusterSpec& cluster, TaskType type) {
  if (type == TaskType::parameter_server)
    throw InvalidArgument("Parameter servers were counted as workers", "they hold variables and train nothing",
                          "Ask for the type chief, worker or evaluator");
  detail::require_member(cluster, Task{type, 0});
  if (type == TaskType::evaluator) return cluster.num_tasks(TaskType::evaluator);
  return cluster.num_tasks(TaskType::chief) + cluster.num_tasks(TaskType::worker);
}

DIST_INLINE std::size_t id_in_cluster(const ClusterSpec& cluster, Task task) {
  if (task.type == TaskType::parameter_server)
    throw InvalidArgument(concat("There is no worker number for ", to_string(task)),
                          "parameter servers are not among the workers", "Ask for the chief, a worker or an evaluator");
  detail::require_member(cluster, task);
  return task.type == TaskType::worker ? task.index + cluster.num_tasks(TaskType::chief) : task.index;
}

DIST_INLINE std::optional<Task> collective_leader(const ClusterSpec& cluster, TaskType type) {
  if (type == TaskType::evaluator) return std::nullopt;
  for (const TaskType leader : {TaskType::chief, TaskType::worker})
    if (cluster.has(leader)) return Task{leader, 0};
  return std::nullopt;
}

DIST_INLINE std::optional<Task> coordination_leader(const ClusterSpec& cluster) {
  for (const TaskType leader : {TaskType::parameter_server, TaskType::chief, TaskType::worker})
    if (cluster.has(leader)) return Task{leader, 0};
  return std::nullopt;
}

}  // namespace dist
