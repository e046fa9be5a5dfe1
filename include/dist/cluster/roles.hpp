/// The role of a task in its cluster. None of these functions looks at addresses.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>

namespace dist {

namespace detail {

/// Throws InvalidArgument for more than one chief or evaluator (spec M08). `source` says where the cluster comes from.
void require_single_tasks(const ClusterSpec& cluster, std::string_view source);

/// Throws InvalidArgument unless the task is of the cluster, which has one chief and one evaluator at most. An evaluator
/// may be left out of the list (spec M08).
void require_member(const ClusterSpec& cluster, Task task);

}  // namespace detail

/// The tasks that train in step: the chief, if there is one, then the workers. A task's place is its worker number.
[[nodiscard]] std::vector<Task> sync_tasks(const ClusterSpec& cluster);

/// Whether the task does what one task only may do: the chief, or worker 0 of a cluster without one. An evaluator,
/// which runs alone, is its own chief, and so is the only process of no cluster (spec M09).
[[nodiscard]] bool is_chief(const ClusterSpec& cluster, Task task);

/// Whether the task writes checkpoints that others are to read: the chief only (spec A15).
[[nodiscard]] bool should_checkpoint(const ClusterSpec& cluster, Task task);

/// Whether the task writes summaries: the chief only (spec A15).
[[nodiscard]] bool should_save_summary(const ClusterSpec& cluster, Task task);

/// How many tasks do the work of a task of that type: chief and workers, or the evaluators (spec M10). Throws
/// InvalidArgument for a parameter server, a type that the cluster does not have, and a second chief or evaluator.
[[nodiscard]] std::size_t worker_count(const ClusterSpec& cluster, TaskType type);

/// The task's worker number: the chief is 0, and workers come after it (spec M11). An evaluator's is its index. Throws
/// InvalidArgument for a parameter server, a task that the cluster does not have, and a second chief or evaluator.
[[nodiscard]] std::size_t id_in_cluster(const ClusterSpec& cluster, Task task);

/// The task that leads the collectives of a task of that type: the chief, else worker 0 (spec M12). None for an
/// evaluator and without a cluster.
[[nodiscard]] std::optional<Task> collective_leader(const ClusterSpec& cluster, TaskType type);

/// The task that others report to: parameter server 0, else the chief, else worker 0 (spec M13). None without a
/// cluster.
[[nodiscard]] std::optional<Task> coordination_leader(const ClusterSpec& cluster);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/roles.ipp>
#endif
