#pragma once

#include <cstddef>
#include <map>

#include <dist/cluster/address.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/error.hpp>

namespace dist {

namespace detail {

DIST_INLINE void validate_addresses(const ClusterSpec& cluster, std::string_view source) {
  struct Entry {
    Task task;
    Address address;
  };
  std::vector<Entry> entries;
  std::map<std::string, Task> owners;
  std::optional<Task> without;
  for (const Task task : cluster.tasks()) {
    const std::string& written = cluster.task_address(task);
    if (written.empty()) {
      without = task;
      continue;
    }
    const Address address = parse_address(written, concat(to_string(task), " of ", source));
    if (is_unspecified(address.host))
      throw InvalidArgument(
          concat("The address ", quoted(written), " of ", to_string(task), " of ", source, " does not identify a host"),
          "it means all interfaces of the local machine", "Write the name or IP address by which other hosts reach it");
    const auto [owner, added] = owners.try_emplace(to_string(address), task);
    if (!added)
      throw InvalidArgument(concat("Two tasks of ", source, " have the address ", quoted(written)),
                            concat(to_string(owner->second), " and ", to_string(task)),
                            "Give every task of a host its own port");
    entries.push_back(Entry{task, address});
  }
  if (without && !entries.empty() && !cluster.has_meeting_place_only())
    throw InvalidArgument(concat("Only some tasks of ", source, " have an address"),
                          concat(to_string(*without), " has none, ", to_string(entries.front().task), " has one"),
                          "Write the addresses of all tasks, or only the address of the first task");
  const Entry* here = nullptr;
  const Entry* elsewhere = nullptr;
  for (const Entry& each : entries) (is_loopback(each.address.host) ? here : elsewhere) = &each;
  if (here != nullptr && elsewhere != nullptr)
    throw InvalidArgument(
        concat("The address '", to_string(here->address), "' of ", to_string(here->task), " of ", source,
               " means a different machine on each host"),
        concat(to_string(elsewhere->task), " is at '", to_string(elsewhere->address), "'"),
        concat("Write a name or IP address of ", to_string(here->task), " that the other hosts can reach"));
}

DIST_INLINE void validate_task(const ClusterSpec& cluster, const std::optional<Task>& task, std::string_view source) {
  if (!task)
    throw InvalidArgument(concat(source, " does not specify the task of this process"),
                          "it lists a cluster, but no task",
                          "Add a task type and an index, such as {\"type\": \"worker\", \"index\": 0}");
  if (task->type == TaskType::evaluator && !cluster.has(TaskType::evaluator)) return;  // it need not be listed
  if (!cluster.has(task->type)) {
    std::string listed;
    for (const TaskType type : cluster.jobs()) listed += concat(listed.empty() ? "'" : ", '", to_string(type), "'");
    throw InvalidArgument(concat("This process is ", to_string(*task), ", but ", source, " lists no task of this type"),
                          concat("the cluster lists ", listed),
                          "Add the type to the cluster, or correct the type of the task");
  }
  if (!cluster.has(*task))
    throw InvalidArgument(
        concat("This process is ", to_string(*task), ", but ", source, " does not list it"),
        concat("the cluster has ", cluster.num_tasks(task->type), " of type '", to_string(task->type),
               "', the last is ", to_string(Task{task->type, cluster.task_indices(task->type).back()})),
        "Indices count from 0; correct the index of the task, or add its address to the cluster");
}

}  // namespace detail

DIST_INLINE void validate_cluster(const ClusterSpec& cluster, const std::optional<Task>& task,
                                  std::string_view source) {
  if (cluster.empty()) return;
  detail::require_single_tasks(cluster, source);
  detail::validate_addresses(cluster, source);
  detail::validate_task(cluster, task, source);
}

DIST_INLINE void validate_multi_worker(const ClusterSpec& cluster, const std::optional<Task>& task,
                                       std::string_view source) {
  if (cluster.empty()) return;
  validate_cluster(cluster, task, source);
  if (sync_tasks(cluster).empty() && !cluster.has(TaskType::evaluator))
    throw InvalidArgument(concat(source, " lists no task that trains"), "it has no chief, no worker and no evaluator",
                          "List the workers' addresses under 'worker'");
  for (const TaskType type : {TaskType::chief, TaskType::worker}) {
    if (cluster.is_contiguous(type)) continue;
    Task missing{type, 0};
    while (cluster.has(missing)) ++missing.index;
    throw InvalidArgument(
        concat(source, " does not list ", to_string(missing)),
        concat("its ", to_string(type), "s go up to ", cluster.task_indices(type).back(), ", with gaps"),
        "Workers that train synchronously need the addresses of all: list all workers, from 0 on (with Kubeflow, set "
        "enableDynamicWorker to false)");
  }
  if (task->type == TaskType::parameter_server)
    throw InvalidArgument(
        concat("This process is ", to_string(*task), " of ", source, ", which MultiWorker does not use"),
        "every worker holds its own copy of the variables", "Do not start parameter servers for this strategy");
}

DIST_INLINE void validate_parameter_servers(const ClusterSpec& cluster, const std::optional<Task>& task,
                                            std::string_view source) {
  if (cluster.empty())
    throw InvalidArgument(concat(source, " lists no cluster"), "parameter servers and workers are separate processes",
                          "List their addresses under 'ps' and 'worker'");
  detail::require_single_tasks(cluster, source);
  detail::validate_addresses(cluster, source);
  if (task != Task{TaskType::chief, 0} || cluster.has(TaskType::chief)) detail::validate_task(cluster, task, source);
  const bool has_job = cluster.has(TaskType::parameter_server) || cluster.has(TaskType::worker);
  if (task->type == TaskType::evaluator && !has_job)
    throw InvalidArgument(
        concat("This process is ", to_string(*task), " of ", source,
               ", which is not a task of a job with parameter servers"),
        "an evaluator runs alone, outside the job, and evaluates its checkpoints",
        "Check the task first: an evaluator does not call dist::serve or use a ParameterServer, but evaluates under "
        "another strategy, such as with nn::SidecarEvaluator under dist::Default");
  if (cluster.has(TaskType::evaluator) || task->type == TaskType::evaluator)
    throw InvalidArgument(
        concat(to_string(Task{TaskType::evaluator, 0}), " of ", source, " is in a cluster with parameter servers"),
        "an evaluator runs alone, outside the job, and no task of the job calls it",
        "Remove it from the list, and start it with a cluster that lists only the evaluator");
  if (!cluster.has(TaskType::parameter_server))
    throw InvalidArgument(concat(source, " lists no parameter server"), "no process would hold the variables",
                          "List at least one address under 'ps'");
  if (!cluster.has(TaskType::worker))
    throw InvalidArgument(concat(source, " lists no worker"), "no process would train",
                          "List at least one address under 'worker'");
  for (const Task each : cluster.tasks())
    if (each.type != TaskType::chief && cluster.task_address(each).empty())
      throw InvalidArgument(concat(to_string(each), " of ", source, " has no address"),
                            "the coordinator needs it to call this task",
                            "Write host:port for each parameter server and each worker");
}

DIST_INLINE std::vector<std::string> multi_worker_notes(const ClusterSpec& cluster, std::string_view source) {
  std::vector<std::string> notes;
  if (const std::size_t servers = cluster.num_tasks(TaskType::parameter_server); servers > 0)
    notes.push_back(concat(source, " lists ", servers, " parameter server", servers == 1 ? "" : "s",
                           ", which MultiWorker does not use: every worker holds its own copy of the variables."));
  if (cluster.has(TaskType::evaluator))
    notes.push_back(
        concat(source, " lists an evaluator in the cluster; it runs alone and does not take part in training."));
  return notes;
}

}  // namespace dist
