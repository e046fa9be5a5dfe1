#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/cluster/address.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/environment.hpp>
#include <dist/cluster/host_list.hpp>
#include <dist/cluster/slurm_resolver.hpp>
#include <dist/cluster/task.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>

namespace dist {

DIST_INLINE ClusterSpec SlurmResolver::cluster_spec() const {
  const Step step = read_step();
  const std::size_t base = port_base();
  std::vector<std::string> addresses;
  for (std::size_t node = 0; node < step.hosts.size(); ++node)
    for (std::size_t local = 0; local < step.tasks[node]; ++local) {
      if (base + local > 65535)
        throw InvalidArgument(text("Slurm's node ", step.hosts[node], " has more tasks than there are ports"),
                              text(step.tasks[node], " tasks from port ", base, " on"), "Choose a lower port_base");
      addresses.push_back(to_string(Address{step.hosts[node], static_cast<std::uint16_t>(base + local)}));
    }
  ClusterSpec cluster;
  std::size_t next = 0;
  for (const auto& [type, count] : jobs(addresses.size()))
    for (std::size_t index = 0; index < count; ++index) cluster.add(Task{type, index}, addresses[next++]);
  return cluster;
}

DIST_INLINE std::optional<Task> SlurmResolver::task() const {
  const Step step = read_step();
  std::size_t place = place_in(step);
  for (const auto& [type, count] : jobs(step.size())) {
    if (place < count) return Task{type, place};
    place -= count;
  }
  return std::nullopt;
}

DIST_INLINE std::size_t SlurmResolver::number(const char* name) const {
  return environment_.require_number(name, why, suggestion);
}

DIST_INLINE SlurmResolver::Step SlurmResolver::read_step() const {
  Step step{expand_host_list(environment_.require("SLURM_STEP_NODELIST", why, suggestion)),
            expand_tasks_per_node(environment_.require("SLURM_STEP_TASKS_PER_NODE", why, suggestion))};
  const std::size_t announced = number("SLURM_STEP_NUM_TASKS");
  if (step.hosts.size() != step.tasks.size() || step.size() != announced)
    throw InvalidArgument("Slurm's variables contradict each other",
                          text("SLURM_STEP_NODELIST has ", step.hosts.size(), " hosts, SLURM_STEP_TASKS_PER_NODE has ",
                               step.size(), " tasks on ", step.tasks.size(), ", SLURM_STEP_NUM_TASKS is ", announced),
                          "Start with srun, and pass all its variables on unchanged");
  return step;
}

DIST_INLINE std::size_t SlurmResolver::place_in(const Step& step) const {
  if (!environment_.get("SLURM_NODEID") && !environment_.get("SLURM_LOCALID")) {
    const std::size_t rank = number("SLURM_PROCID");
    if (rank >= step.size()) refuse_place(text("SLURM_PROCID=", rank, ", and the step has ", step.size(), " tasks"));
    return rank;
  }
  const std::size_t node = number("SLURM_NODEID");
  const std::size_t local = number("SLURM_LOCALID");
  if (node >= step.hosts.size() || local >= step.tasks[node])
    refuse_place(text("SLURM_NODEID=", node, " and SLURM_LOCALID=", local, ", and the step has ", step.hosts.size(),
                      " nodes", node < step.hosts.size() ? text(" and ", step.tasks[node], " tasks on this one") : ""));
  return std::accumulate(step.tasks.begin(), step.tasks.begin() + static_cast<std::ptrdiff_t>(node), local);
}

DIST_INLINE void SlurmResolver::refuse_place(const std::string& given) {
  throw InvalidArgument("This process is not among the tasks of its Slurm step", given,
                        "Start with srun, and pass all its variables on");
}

DIST_INLINE std::size_t SlurmResolver::port_base() const {
  if (options_.port_base) return *options_.port_base;
  std::optional<std::size_t> job = environment_.number("SLURM_JOB_ID");
  if (!job) job = number("SLURM_JOBID");
  return 50000 + *job % 10000;
}

DIST_INLINE std::vector<std::pair<TaskType, std::size_t>> SlurmResolver::jobs(std::size_t available) const {
  if (options_.jobs.empty()) return {{TaskType::worker, available}};
  std::vector<std::pair<TaskType, std::size_t>> counts;
  std::size_t wanted = 0;
  for (const TaskType type : {TaskType::chief, TaskType::evaluator, TaskType::parameter_server, TaskType::worker})
    if (const auto found = options_.jobs.find(type); found != options_.jobs.end()) {
      counts.push_back(*found);
      wanted += found->second;
    }
  if (wanted > available)
    throw InvalidArgument(text("Requested ", wanted, " tasks but only ", available, " were assigned"),
                          text("SLURM_STEP_NUM_TASKS is ", available), text("Start with srun -n ", wanted));
  return counts;
}

}  // namespace dist
