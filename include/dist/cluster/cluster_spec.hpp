#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/address.hpp>
#include <dist/core/config.hpp>
#include <dist/core/text.hpp>
#include <dist/net/endpoint.hpp>

namespace dist {

/// The role of a process (spec M08). Chief and workers train together, parameter servers hold their variables, and an
/// evaluator runs alone.
enum class TaskType { chief, worker, parameter_server, evaluator };

/// All task types.
inline constexpr std::array<TaskType, 4> task_types{TaskType::chief, TaskType::worker, TaskType::parameter_server,
                                                    TaskType::evaluator};

/// Returns the name in TF_CONFIG: "chief", "worker", "ps" or "evaluator".
[[nodiscard]] constexpr std::string_view to_string(TaskType type) noexcept {
  constexpr std::array<std::string_view, 4> names{"chief", "worker", "ps", "evaluator"};
  return names[static_cast<std::size_t>(type)];
}

/// Returns the type with this name. "master" is the chief in older systems and SageMaker.
[[nodiscard]] constexpr std::optional<TaskType> task_type_named(std::string_view name) noexcept {
  if (name == "master") return TaskType::chief;
  for (const TaskType type : task_types)
    if (name == to_string(type)) return type;
  return std::nullopt;
}

/// One process of a cluster.
struct Task {
  TaskType type = TaskType::worker;  ///< role of the process
  std::size_t index = 0;             ///< among tasks of this type

  friend constexpr auto operator<=>(const Task&, const Task&) = default;
  friend constexpr bool operator==(const Task&, const Task&) = default;  // nvcc 13 drops the implicit one
};

/// "worker 2"
[[nodiscard]] inline std::string to_string(const Task& task) { return concat(to_string(task.type), " ", task.index); }

/// The tasks of a job and their addresses, by type and index (spec M06); empty for a single process. Indices may have
/// gaps. Without addresses, the launcher connects the processes; if only the first task has one, the others connect to
/// it.
///
/// Addresses are stored as given; `validate_cluster` parses them.
class ClusterSpec {
 public:
  ClusterSpec() = default;
  /// `{{TaskType::chief, {"a:2222"}}, {TaskType::worker, {"b:2222", "c:2222"}}}`: task i has the i-th address.
  ClusterSpec(std::initializer_list<std::pair<TaskType, std::vector<std::string>>> jobs);

  /// Throws InvalidArgument if the task exists.
  void add(Task task, std::string address);
  /// Adds tasks, numbered from the current number of tasks of this type.
  void append(TaskType type, const std::vector<std::string>& addresses);

  /// True for a single process: no tasks.
  [[nodiscard]] bool empty() const noexcept;
  /// The types that have tasks.
  [[nodiscard]] std::vector<TaskType> jobs() const;
  /// True if there are tasks of this type.
  [[nodiscard]] bool has(TaskType type) const noexcept;
  /// True if the task is in the cluster.
  [[nodiscard]] bool has(Task task) const noexcept;
  /// Returns the number of tasks of this type.
  [[nodiscard]] std::size_t num_tasks(TaskType type) const noexcept;
  /// The indices in ascending order.
  [[nodiscard]] std::vector<std::size_t> task_indices(TaskType type) const;
  /// True if the indices are 0, 1, 2 and so on.
  [[nodiscard]] bool is_contiguous(TaskType type) const noexcept;
  /// All tasks, by type and index.
  [[nodiscard]] std::vector<Task> tasks() const;
  /// The addresses in the order of indices.
  [[nodiscard]] std::vector<std::string> job_tasks(TaskType type) const;
  /// Throws InvalidArgument if the task is not in the cluster.
  [[nodiscard]] const std::string& task_address(Task task) const;

  /// True if of several tasks only the first has an address.
  [[nodiscard]] bool has_meeting_place_only() const;

  /// Returns a hash, equal in all processes with the same list.
  [[nodiscard]] std::uint64_t checksum() const noexcept;

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;

 private:
  using Tasks = std::map<std::size_t, std::string>;

  [[nodiscard]] Tasks& tasks(TaskType type) noexcept;
  [[nodiscard]] const Tasks& tasks(TaskType type) const noexcept;

  std::array<Tasks, task_types.size()> by_type_;
};

/// Parses "host:port". Throws InvalidArgument naming `owner` (spec M25).
[[nodiscard]] inline net::Endpoint endpoint_at(std::string_view written, std::string_view owner) {
  const Address address = parse_address(written, owner);
  return {address.host, std::to_string(address.port)};
}

/// Returns the endpoint of a task. Throws InvalidArgument if it has no address, naming `source`, such as "TF_CONFIG".
[[nodiscard]] inline net::Endpoint task_endpoint(const ClusterSpec& cluster, Task task, std::string_view source) {
  return endpoint_at(cluster.task_address(task), concat(to_string(task), " of ", source));
}

namespace detail {

/// Throws InvalidArgument, naming `source`, for several chiefs or evaluators (spec M08).
void require_single_tasks(const ClusterSpec& cluster, std::string_view source);

/// Throws InvalidArgument for a task outside the cluster, or several chiefs or evaluators. An evaluator need not be
/// listed (spec M08).
void require_member(const ClusterSpec& cluster, Task task);

}  // namespace detail

/// Returns the tasks that train synchronously, by worker number: the chief, if any, then the workers.
[[nodiscard]] std::vector<Task> sync_tasks(const ClusterSpec& cluster);

/// True if the task does work that exactly one task must do: the chief, or worker 0 without a chief. An evaluator is
/// its own chief, and so is a process without a cluster (spec M09).
[[nodiscard]] bool is_chief(const ClusterSpec& cluster, Task task);

/// True if the task writes the shared checkpoints: the chief only (spec A15).
[[nodiscard]] bool should_checkpoint(const ClusterSpec& cluster, Task task);

/// True if the task writes summaries: the chief only (spec A15).
[[nodiscard]] bool should_save_summary(const ClusterSpec& cluster, Task task);

/// Returns how many tasks share the work of this type: chief and workers, or the evaluators (spec M10). Throws
/// InvalidArgument for a parameter server, a type without tasks, and several chiefs or evaluators.
[[nodiscard]] std::size_t worker_count(const ClusterSpec& cluster, TaskType type);

/// Returns the task's worker number: 0 for the chief, followed by the workers; an evaluator's own index (spec M11).
/// Throws InvalidArgument for a parameter server, a task outside the cluster, and several chiefs or evaluators.
[[nodiscard]] std::size_t id_in_cluster(const ClusterSpec& cluster, Task task);

/// Returns the leader of the collectives of this type: the chief, else worker 0 (spec M12). Empty for an evaluator, or
/// without a cluster.
[[nodiscard]] std::optional<Task> collective_leader(const ClusterSpec& cluster, TaskType type);

/// Returns the task to which others report: parameter server 0, else the chief, else worker 0 (spec M13). Empty without
/// a cluster.
[[nodiscard]] std::optional<Task> coordination_leader(const ClusterSpec& cluster);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/cluster_spec.ipp>
#endif
