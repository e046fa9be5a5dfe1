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
          concat("The address ", quoted(written), " of ", to_string(task), " of ", source, " reaches no task"),
          "it means every interface of one's own machine", "Write the name or number that the other hosts know it by");
    const auto [owner, added] = owners.try_emplace(to_string(address), task);
    if (!added)
      throw InvalidArgument(concat("Two tasks of ", source, " have the address ", quoted(written)),
                            concat(to_string(owner->second), " and ", to_string(task)),
                            "Give every task a port of its own on its host");
    entries.push_back(Entry{task, address});
  }
  if (without && !entries.empty() && !cluster.has_meeting_place_only())
    throw InvalidArgument(concat("Only some tasks of ", source, " have an address"),
                          concat(to_string(*without), " has none, ", to_string(entries.front().task), " has"),
                          "Write the addresses of all tasks, or that of the first one alone");
  const Entry* here = nullptr;
  const Entry* elsewhere = nullptr;
  for (const Entry& each : entries) (is_loopback(each.address.host) ? here : elsewhere) = &each;
  if (here != nullptr && elsewhere != nullptr)
    throw InvalidArgument(
        concat("The address '", to_string(here->address), "' of ", to_string(here->task), " of ", source,
               " means another machine on each host"),
        concat(to_string(elsewhere->task), " is at '", to_string(elsewhere->address), "'"),
        concat("Write the name or number of the host of ", to_string(here->task), " that the other hosts know"));
}

DIST_INLINE void validate_task(const ClusterSpec& cluster, const std::optional<Task>& task, std::string_view source) {
  if (!task)
    throw InvalidArgument(concat(source, " does not say which task this process is"), "it lists a cluster, and no task",
                          "Add a task type and an index, such as {\"type\": \"worker\", \"index\": 0}");
  if (task->type == TaskType::evaluator && !cluster.has(TaskType::evaluator)) return;  // it need not be listed
  if (!cluster.has(task->type)) {
    std::string listed;
    for (const TaskType type : cluster.jobs()) listed += concat(listed.empty() ? "'" : ", '", to_string(type), "'");
    throw InvalidArgument(concat("This process is ", to_string(*task), ", and ", source, " lists no such type"),
                          concat("the cluster lists ", listed),
                          "Add the type to the cluster, or correct the type of the task");
  }
  if (!cluster.has(*task))
    throw InvalidArgument(
        concat("This process is ", to_string(*task), ", and ", source, " does not list it"),
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
    throw InvalidArgument(concat(source, " lists nobody to train"), "there is no chief, no worker and no evaluator",
                          "List the workers' addresses under 'worker'");
  for (const TaskType type : {TaskType::chief, TaskType::worker}) {
    if (cluster.is_contiguous(type)) continue;
    Task missing{type, 0};
    while (cluster.has(missing)) ++missing.index;
    throw InvalidArgument(
        concat(source, " does not list ", to_string(missing)),
        concat("its ", to_string(type), "s go up to ", cluster.task_indices(type).back(), ", with gaps"),
        "Workers that train in step know each other: list them all from 0 on (with Kubeflow, set "
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
    throw InvalidArgument(concat(source, " lists no cluster"),
                          "parameter servers and workers are processes of their own",
                          "List their addresses under 'ps' and 'worker'");
  detail::require_single_tasks(cluster, source);
  detail::validate_addresses(cluster, source);
  if (task != Task{TaskType::chief, 0} || cluster.has(TaskType::chief)) detail::validate_task(cluster, task, source);
  const bool has_job = cluster.has(TaskType::parameter_server) || cluster.has(TaskType::worker);
  if (task->type == TaskType::evaluator && !has_job)
    throw InvalidArgument(
        concat("This process is ", to_string(*task), " of ", source,
               ", which is no task of a job with parameter servers"),
        "it runs beside the job, alone, and evaluates its checkpoints",
        "Look at the task first: an evaluator calls neither dist::serve nor a ParameterServer, but evaluates under "
        "another strategy, such as by nn::SidecarEvaluator under dist::Default");
  if (cluster.has(TaskType::evaluator) || task->type == TaskType::evaluator)
    throw InvalidArgument(
        concat(to_string(Task{TaskType::evaluator, 0}), " of ", source, " is in a cluster with parameter servers"),
        "it runs beside the job, alone, and nobody there calls it",
        "Take it out of the list, and start it with a cluster that lists the evaluator only");
  if (!cluster.has(TaskType::parameter_server))
    throw InvalidArgument(concat(source, " lists no parameter server"), "the variables would be nowhere",
                          "List at least one address under 'ps'");
  if (!cluster.has(TaskType::worker))
    throw InvalidArgument(concat(source, " lists no worker"), "nobody would train",
                          "List at least one address under 'worker'");
  for (const Task each : cluster.tasks())
    if (each.type != TaskType::chief && cluster.task_address(each).empty())
      throw InvalidArgument(concat(to_string(each), " of ", source, " has no address"),
                            "the coordinator calls it there",
                            "Write host:port for each parameter server and each worker");
}

DIST_INLINE std::vector<std::string> multi_worker_notes(const ClusterSpec& cluster, std::string_view source) {
  std::vector<std::string> notes;
  if (const std::size_t servers = cluster.num_tasks(TaskType::parameter_server); servers > 0)
    notes.push_back(concat(source, " lists ", servers, " parameter server", servers == 1 ? "" : "s",
                           ", which MultiWorker does not use: every worker holds its own copy of the variables."));
  if (cluster.has(TaskType::evaluator))
    notes.push_back(
        concat(source, " lists an evaluator among the cluster; it runs alone and takes no part in training."));
  return notes;
}

}  // namespace dist
