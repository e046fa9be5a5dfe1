#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/tpu_resolver.hpp>
#include <dist/core/error.hpp>
#include <dist/device/pjrt/client.hpp>
#include <dist/device/pjrt/topology.hpp>

namespace dist {

/// Thrown if the devices of a PJRT plugin do not match the cluster or the other processes.
class TopologyMismatch : public Error {
 public:
  using Error::Error;
};

/// Returns the TPU's devices, after a check that plugin and resolver agree on the number of processes, the number of
/// this process, and the devices per process (spec M22). The client has already initialised the devices. Throws
/// TopologyMismatch, PjrtError, and the errors of the resolver.
///
///   const dist::pjrt::Client client;
///   std::cout << to_string(dist::initialize_tpu_system(dist::TpuResolver{}, client)) << '\n';
[[nodiscard]] inline pjrt::Topology initialize_tpu_system(const TpuResolver& resolver, const pjrt::Client& client) {
  const pjrt::Topology topology = topology_of(client);
  const std::string plugin = concat("The PJRT plugin ", quoted(client.api().path(), client.api().path().size()));
  const std::string source = resolver.describe();
  const std::size_t tasks = resolver.cluster_spec().num_tasks(TaskType::worker);
  const std::map<std::size_t, std::size_t> devices = topology.devices_of_processes();
  if (devices.size() != (tasks == 0 ? 1 : tasks))
    throw TopologyMismatch(
        concat(plugin, " and ", source, " do not have the same processes"),
        concat("the plugin's number of processes is ", devices.size(), ", and the cluster's is ",
               tasks == 0 ? "1, this process alone" : concat(tasks)),
        "Set the variables of the TPU in all processes, and start the number of processes that they specify");
  const std::size_t own = resolver.task().value_or(Task{}).index;
  if (client.process() != own)
    throw TopologyMismatch(concat(plugin, " and ", source, " number this process differently"),
                           concat("it is ", client.process(), " for the plugin, and ", own, " in the cluster"),
                           "Give TPU_WORKER_ID and CLOUD_TPU_TASK_ID the same number");
  const auto [first, count] = *devices.begin();
  for (const auto& [process, other] : devices)
    if (other != count)
      throw TopologyMismatch("The processes of the TPU do not have the same number of devices",
                             concat("process ", first, " has ", count, ", and process ", process, " has ", other),
                             "Use the same number of chips in all processes (TPU_VISIBLE_CHIPS)");
  if (const std::optional<std::size_t> wanted = resolver.num_accelerators(); wanted && *wanted != count)
    throw TopologyMismatch(
        concat(plugin, " does not have the devices of ", source),
        concat("each process has ", count, ", but ", *wanted, " were expected"),
        "Check TPU_ACCELERATOR_TYPE and TPU_CHIPS_PER_PROCESS_BOUNDS, and whether another program uses the TPU");
  return topology;
}
/// Returns the TPU's devices, checked against the environment's cluster.
[[nodiscard]] inline pjrt::Topology initialize_tpu_system(const pjrt::Client& client) {
  return initialize_tpu_system(TpuResolver{}, client);
}

}  // namespace dist
