#pragma once

#include <dist/cluster/cluster_spec.hpp>
#include <dist/core/error.hpp>
#include <dist/core/hash.hpp>

namespace dist {

DIST_INLINE ClusterSpec::ClusterSpec(std::initializer_list<std::pair<TaskType, std::vector<std::string>>> jobs) {
  for (const auto& [type, addresses] : jobs) append(type, addresses);
}

DIST_INLINE void ClusterSpec::add(Task task, std::string address) {
  const auto [there, added] = tasks(task.type).try_emplace(task.index, std::move(address));
  if (!added)
    throw InvalidArgument(concat("The cluster lists ", to_string(task), " twice"),
                          concat("at ", quoted(there->second), " and at ", quoted(address)),
                          "Give every task its own index");
}

DIST_INLINE void ClusterSpec::append(TaskType type, const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) add(Task{type, num_tasks(type)}, address);
}

DIST_INLINE bool ClusterSpec::empty() const noexcept {
  for (const Tasks& each : by_type_)
    if (!each.empty()) return false;
  return true;
}

DIST_INLINE std::vector<TaskType> ClusterSpec::jobs() const {
  std::vector<TaskType> types;
  for (const TaskType type : task_types)
    if (has(type)) types.push_back(type);
  return types;
}

DIST_INLINE bool ClusterSpec::has(TaskType type) const noexcept { return !tasks(type).empty(); }

DIST_INLINE bool ClusterSpec::has(Task task) const noexcept { return tasks(task.type).contains(task.index); }

DIST_INLINE std::size_t ClusterSpec::num_tasks(TaskType type) const noexcept { return tasks(type).size(); }

DIST_INLINE std::vector<std::size_t> ClusterSpec::task_indices(TaskType type) const {
  std::vector<std::size_t> indices;
  for (const auto& [index, address] : tasks(type)) indices.push_back(index);
  return indices;
}

DIST_INLINE bool ClusterSpec::is_contiguous(TaskType type) const noexcept {
  return !has(type) || tasks(type).rbegin()->first + 1 == num_tasks(type);
}

DIST_INLINE std::vector<Task> ClusterSpec::tasks() const {
  std::vector<Task> all;
  for (const TaskType type : task_types)
    for (const auto& [index, address] : tasks(type)) all.push_back(Task{type, index});
  return all;
}

DIST_INLINE std::vector<std::string> ClusterSpec::job_tasks(TaskType type) const {
  std::vector<std::string> addresses;
  for (const auto& [index, address] : tasks(type)) addresses.push_back(address);
  return addresses;
}

DIST_INLINE const std::string& ClusterSpec::task_address(Task task) const {
  const auto found = tasks(task.type).find(task.index);
  if (found == tasks(task.type).end())
    throw InvalidArgument(concat("The cluster has no ", to_string(task)),
                          has(task.type) ? concat("it has ", num_tasks(task.type), " of that type, the last is ",
                                                  to_string(Task{task.type, tasks(task.type).rbegin()->first}))
                                         : concat("it has no task of type '", to_string(task.type), "'"),
                          "Use a task that the cluster lists");
  return found->second;
}

DIST_INLINE bool ClusterSpec::has_meeting_place_only() const {
  const std::vector<Task> all = tasks();
  std::size_t addresses = 0;
  for (const Task task : all) addresses += task_address(task).empty() ? 0U : 1U;
  return all.size() > 1 && addresses == 1 && !task_address(all.front()).empty();
}

DIST_INLINE std::uint64_t ClusterSpec::checksum() const noexcept {
  std::uint64_t hash = 0;
  for (const TaskType type : task_types)
    for (const auto& [index, address] : tasks(type)) {
      for (const std::uint64_t number :
           {static_cast<std::uint64_t>(type), std::uint64_t{index}, detail::hash_of(address)})
        hash = detail::combine(hash, number);
    }
  return hash;
}

DIST_INLINE ClusterSpec::Tasks& ClusterSpec::tasks(TaskType type) noexcept {
  return by_type_[static_cast<std::size_t>(type)];
}

DIST_INLINE const ClusterSpec::Tasks& ClusterSpec::tasks(TaskType type) const noexcept {
  return by_type_[static_cast<std::size_t>(type)];
}

namespace detail {

DIST_INLINE void require_single_tasks(const ClusterSpec& cluster, std::string_view source) {
  for (const TaskType single : {TaskType::chief, TaskType::evaluator})
    if (cluster.num_tasks(single) > 1)
      throw InvalidArgument(concat(source, " lists more than one ", to_string(single)),
                            concat(cluster.num_tasks(single), " tasks; at most one is allowed"),
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
    throw InvalidArgument("Parameter servers were counted as workers", "they hold variables and do not train",
                          "Use the type chief, worker or evaluator");
  detail::require_member(cluster, Task{type, 0});
  if (type == TaskType::evaluator) return cluster.num_tasks(TaskType::evaluator);
  return cluster.num_tasks(TaskType::chief) + cluster.num_tasks(TaskType::worker);
}

DIST_INLINE std::size_t id_in_cluster(const ClusterSpec& cluster, Task task) {
  if (task.type == TaskType::parameter_server)
    throw InvalidArgument(concat("No worker number exists for ", to_string(task)), "parameter servers are not workers",
                          "Use the chief, a worker or an evaluator");
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
