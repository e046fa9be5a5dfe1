/// The role of a task in its cluster. None of these functions looks at addresses.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/error.hpp>

namespace dist {

namespace detail {

/// Throws InvalidArgument for more than one chief or evaluator (spec M08). `source` says where the cluster comes from.
inline void require_single_tasks(const ClusterSpec& cluster, std::string_view source) {
  for (const TaskType single : {TaskType::chief, TaskType::evaluator})
    if (cluster.num_tasks(single) > 1)
      throw InvalidArgument(text(source, " lists more than one ", to_string(single)),
                            text(cluster.num_tasks(single), " tasks; at most one may be there"),
                            single == TaskType::chief ? "List the others under 'worker'" : "List one evaluator");
}

/// Throws InvalidArgument unless the task is of the cluster, which has one chief and one evaluator at most. An evaluator
/// may be left out of the list (spec M08).
inline void require_member(const ClusterSpec& cluster, Task task) {
  require_single_tasks(cluster, "The cluster");
  if (task.type != TaskType::evaluator || cluster.has(TaskType::evaluator))
    static_cast<void>(cluster.task_address(task));
}

}  // namespace detail

/// The tasks that train in step: the chief, if there is one, then the workers. A task's place is its worker number.
[[nodiscard]] inline std::vector<Task> sync_tasks(const ClusterSpec& cluster) {
  std::vector<Task> tasks;
  for (const TaskType type : {TaskType::chief, TaskType::worker})
    for (const std::size_t index : cluster.task_indices(type)) tasks.push_back(Task{type, index});
  return tasks;
}

/// Whether the task does what one task only may do: the chief, or worker 0 of a cluster without one. An evaluator,
/// which runs alone, is its own chief, and so is the only process of no cluster (spec M09).
[[nodiscard]] inline bool is_chief(const ClusterSpec& cluster, Task task) {
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

/// Whether the task writes checkpoints that others are to read: the chief only (spec A15).
[[nodiscard]] inline bool should_checkpoint(const ClusterSpec& cluster, Task task) { return is_chief(cluster, task); }

/// Whether the task writes summaries: the chief only (spec A15).
[[nodiscard]] inline bool should_save_summary(const ClusterSpec& cluster, Task task) { return is_chief(cluster, task); }

/// How many tasks do the work of a task of that type: chief and workers, or the evaluators (spec M10). Throws
/// InvalidArgument for a parameter server, a type that the cluster does not have, and a second chief or evaluator.
[[nodiscard]] inline std::size_t worker_count(const ClusterSpec& cluster, TaskType type) {
  if (type == TaskType::parameter_server)
    throw InvalidArgument("Parameter servers were counted as workers", "they hold variables and train nothing",
                          "Ask for the type chief, worker or evaluator");
  detail::require_member(cluster, Task{type, 0});
  if (type == TaskType::evaluator) return cluster.num_tasks(TaskType::evaluator);
  return cluster.num_tasks(TaskType::chief) + cluster.num_tasks(TaskType::worker);
}

/// The task's worker number: the chief is 0, and workers come after it (spec M11). An evaluator's is its index. Throws
/// InvalidArgument for a parameter server, a task that the cluster does not have, and a second chief or evaluator.
[[nodiscard]] inline std::size_t id_in_cluster(const ClusterSpec& cluster, Task task) {
  if (task.type == TaskType::parameter_server)
    throw InvalidArgument(text("There is no worker number for ", to_string(task)),
                          "parameter servers are not among the workers", "Ask for the chief, a worker or an evaluator");
  detail::require_member(cluster, task);
  return task.type == TaskType::worker ? task.index + cluster.num_tasks(TaskType::chief) : task.index;
}

/// The task that leads the collectives of a task of that type: the chief, else worker 0 (spec M12). None for an
/// evaluator and without a cluster.
[[nodiscard]] inline std::optional<Task> collective_leader(const ClusterSpec& cluster, TaskType type) {
  if (type == TaskType::evaluator) return std::nullopt;
  for (const TaskType leader : {TaskType::chief, TaskType::worker})
    if (cluster.has(leader)) return Task{leader, 0};
  return std::nullopt;
}

/// The task that others report to: parameter server 0, else the chief, else worker 0 (spec M13). None without a
/// cluster.
[[nodiscard]] inline std::optional<Task> coordination_leader(const ClusterSpec& cluster) {
  for (const TaskType leader : {TaskType::parameter_server, TaskType::chief, TaskType::worker})
    if (cluster.has(leader)) return Task{leader, 0};
  return std::nullopt;
}

}  // namespace dist
