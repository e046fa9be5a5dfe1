#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/task.hpp>
#include <dist/core/checksum.hpp>
#include <dist/core/error.hpp>

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
  ClusterSpec(std::initializer_list<std::pair<TaskType, std::vector<std::string>>> jobs) {
    for (const auto& [type, addresses] : jobs) append(type, addresses);
  }

  /// Throws InvalidArgument when the task is there already.
  void add(Task task, std::string address) {
    const auto [there, added] = tasks(task.type).try_emplace(task.index, std::move(address));
    if (!added)
      throw InvalidArgument(text("The cluster lists ", to_string(task), " twice"),
                            text("at ", quoted(there->second), " and at ", quoted(address)),
                            "Give every task an index of its own");
  }
  /// Adds tasks of that type, numbered from the number of those that are there.
  void append(TaskType type, const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) add(Task{type, num_tasks(type)}, address);
  }

  [[nodiscard]] bool empty() const noexcept {
    for (const Tasks& each : by_type_)
      if (!each.empty()) return false;
    return true;
  }
  /// The types that have tasks.
  [[nodiscard]] std::vector<TaskType> jobs() const {
    std::vector<TaskType> types;
    for (const TaskType type : task_types)
      if (has(type)) types.push_back(type);
    return types;
  }
  [[nodiscard]] bool has(TaskType type) const noexcept { return !tasks(type).empty(); }
  [[nodiscard]] bool has(Task task) const noexcept { return tasks(task.type).contains(task.index); }
  /// Zero for a type without tasks.
  [[nodiscard]] std::size_t num_tasks(TaskType type) const noexcept { return tasks(type).size(); }
  /// In ascending order.
  [[nodiscard]] std::vector<std::size_t> task_indices(TaskType type) const {
    std::vector<std::size_t> indices;
    for (const auto& [index, address] : tasks(type)) indices.push_back(index);
    return indices;
  }
  /// Whether the indices of that type are 0, 1, 2 and so on, without a gap.
  [[nodiscard]] bool is_contiguous(TaskType type) const noexcept {
    return !has(type) || tasks(type).rbegin()->first + 1 == num_tasks(type);
  }
  /// All tasks: by type, then by index.
  [[nodiscard]] std::vector<Task> tasks() const {
    std::vector<Task> all;
    for (const TaskType type : task_types)
      for (const auto& [index, address] : tasks(type)) all.push_back(Task{type, index});
    return all;
  }
  /// The addresses of that type's tasks, in the order of their indices.
  [[nodiscard]] std::vector<std::string> job_tasks(TaskType type) const {
    std::vector<std::string> addresses;
    for (const auto& [index, address] : tasks(type)) addresses.push_back(address);
    return addresses;
  }
  /// Throws InvalidArgument for a task that the cluster does not have.
  [[nodiscard]] const std::string& task_address(Task task) const {
    const auto found = tasks(task.type).find(task.index);
    if (found == tasks(task.type).end())
      throw InvalidArgument(text("The cluster has no ", to_string(task)),
                            has(task.type) ? text("it has ", num_tasks(task.type), " of that type, the last is ",
                                                  to_string(Task{task.type, tasks(task.type).rbegin()->first}))
                                           : text("it has no task of type '", to_string(task.type), "'"),
                            "Ask for a task that the cluster lists");
    return found->second;
  }

  /// Whether the first task alone has an address, of several: where the others meet it.
  [[nodiscard]] bool has_meeting_place_only() const {
    const std::vector<Task> all = tasks();
    std::size_t addresses = 0;
    for (const Task task : all) addresses += task_address(task).empty() ? 0U : 1U;
    return all.size() > 1 && addresses == 1 && !task_address(all.front()).empty();
  }

  /// The same number in every process that has the same list, and almost surely another for another list.
  [[nodiscard]] std::uint64_t checksum() const noexcept {
    std::uint64_t hash = 0;
    for (const TaskType type : task_types)
      for (const auto& [index, address] : tasks(type)) {
        for (const std::size_t number : {static_cast<std::size_t>(type), index, address.size()})
          hash = detail::extended_checksum(hash, number);
        for (const char letter : address) hash = detail::extended_checksum(hash, static_cast<unsigned char>(letter));
      }
    return hash;
  }

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;

 private:
  using Tasks = std::map<std::size_t, std::string>;

  [[nodiscard]] Tasks& tasks(TaskType type) noexcept { return by_type_[static_cast<std::size_t>(type)]; }
  [[nodiscard]] const Tasks& tasks(TaskType type) const noexcept { return by_type_[static_cast<std::size_t>(type)]; }

  std::array<Tasks, task_types.size()> by_type_;
};

}  // namespace dist
