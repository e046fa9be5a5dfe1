#pragma once

#include <vector>

#include <dist/cluster/address.hpp>
#include <dist/cluster/address_exchange.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/mpi/hosted_world.hpp>
#include <dist/cluster/mpi/world_host.hpp>
#include <dist/cluster/torchrun_resolver.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/net/secret.hpp>

namespace dist::detail {

[[gnu::cold]] DIST_INLINE std::unique_ptr<WorldHandle> join_hosted_world(const ClusterSpec& cluster, std::size_t worker,
                                                                         std::string_view source,
                                                                         std::chrono::milliseconds start_timeout) {
  const net::Deadline deadline = net::Deadline::in(start_timeout);
  HostedOptions options;
  options.rank = worker;
  options.secret = net::job_secret();
  const auto endpoint_of = [&](Task each) -> HostedTask {
    const Address address = parse_address(cluster.task_address(each), concat(to_string(each), " of ", source));
    return {address.host, concat(address.port)};
  };
  const std::vector<Task> tasks = sync_tasks(cluster);
  if (cluster.has_meeting_place_only()) {
    net::AddressServerOptions meeting;
    meeting.place = endpoint_of(tasks.front());
    meeting.rank = worker;
    meeting.world = tasks.size();
    meeting.secret = options.secret;
    meeting.deadline = start_timeout;
    const TorchrunResolver torchrun;
    meeting.local_rank = torchrun.local_rank();
    meeting.other_ports = torchrun.other_ports();
    meeting.agent_has_place = torchrun.agent_listens();
    meeting.workers_elsewhere = torchrun.workers_elsewhere();
    meeting.job = torchrun.job();
    options.tasks = net::exchange_addresses(meeting);
  } else {
    for (const Task each : tasks) options.tasks.push_back(endpoint_of(each));
  }
  options.deadline = std::max(deadline.left(), net::Milliseconds{1});
  return std::make_unique<HostedWorld>(HostedWorld::join(options));
}

}  // namespace dist::detail
