#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/task.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// The tasks of a job and their addresses, by type and index (spec M06). Indices may have gaps. An empty address means
/// that the launcher connects the processes, or, where the first task alone has an address, that the others
/// meet it there. No tasks at all: one process on its own.
///
/// The addresses are kept as they were written; `validate_cluster` reads them.
class ClusterSpec {
 public:
  ClusterSpec() = default;
  /// `{{TaskType::chief, {"a:2222"}}, {TaskType::worker, {"b:2222", "c:2222"}}}`: task i has the i-th address.
  ClusterSpec(std::initializer_list<std::pair<TaskType, std::vector<std::string>>> jobs);

  /// Throws InvalidArgument when the task is there already.
  void add(Task task, std::string address);
  /// Adds tasks of that type, numbered from the number of those that are there.
  void append(TaskType type, const std::vector<std::string>& addresses);

  [[nodiscard]] bool empty() const noexcept;
  /// The types that have tasks.
  [[nodiscard]] std::vector<TaskType> jobs() const;
  [[nodiscard]] bool has(TaskType type) const noexcept;
  [[nodiscard]] bool has(Task task) const noexcept;
  /// Zero for a type without tasks.
  [[nodiscard]] std::size_t num_tasks(TaskType type) const noexcept;
  /// In ascending order.
  [[nodiscard]] std::vector<std::size_t> task_indices(TaskType type) const;
  /// Whether the indices of that type are 0, 1, 2 and so on, without a gap.
  [[nodiscard]] bool is_contiguous(TaskType type) const noexcept;
  /// All tasks: by type, then by index.
  [[nodiscard]] std::vector<Task> tasks() const;
  /// The addresses of that type's tasks, in the order of their indices.
  [[nodiscard]] std::vector<std::string> job_tasks(TaskType type) const;
  /// Throws InvalidArgument for a task that the cluster does not have.
  [[nodiscard]] const std::string& task_address(Task task) const;

  /// Whether the first task alone has an address, of several: where the others meet it.
  [[nodiscard]] bool has_meeting_place_only() const;

  /// The same number in every process that has the same list, and almost surely another for another list.
  [[nodiscard]] std::uint64_t checksum() const noexcept;

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;

 private:
  using Tasks = std::map<std::size_t, std::string>;

  [[nodiscard]] Tasks& tasks(TaskType type) noexcept;
  [[nodiscard]] const Tasks& tasks(TaskType type) const noexcept;

  std::array<Tasks, task_types.size()> by_type_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/cluster_spec.ipp>
#endif
