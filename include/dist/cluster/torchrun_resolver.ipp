#pragma once

#include <dist/cluster/address.hpp>
#include <dist/cluster/torchrun_resolver.hpp>
#include <dist/core/error.hpp>

namespace dist {

DIST_INLINE ClusterSpec TorchrunResolver::cluster_spec() const {
  if (!is_set()) return {};
  const std::size_t workers = number("WORLD_SIZE");
  constexpr std::size_t most = 1'000'000;
  if (workers == 0 || workers > most)
    throw InvalidArgument("WORLD_SIZE is not a valid number of workers", concat("it is ", workers),
                          "Set it to 1 or more");
  ClusterSpec cluster;
  for (std::size_t rank = 0; rank < workers; ++rank)
    cluster.add(Task{TaskType::worker, rank}, rank == 0 ? meeting_place() : "");
  return cluster;
}

DIST_INLINE std::optional<Task> TorchrunResolver::task() const {
  if (!is_set()) return std::nullopt;
  return Task{TaskType::worker, number("RANK")};
}

DIST_INLINE std::size_t TorchrunResolver::number(const char* name) const {
  return environment_.require_number(name, why, suggestion);
}

DIST_INLINE std::vector<std::uint16_t> TorchrunResolver::other_ports() const {
  std::vector<std::uint16_t> ports;
  if (!is_set() || !agent_listens()) return ports;
  constexpr std::uint32_t lowest = 10'000, highest = 32'000;  // below the system's ephemeral ports
  auto mixed = static_cast<std::uint32_t>(number("MASTER_PORT"));
  for (int i = 0; i < 3; ++i) {
    mixed = mixed * 2'654'435'761U + 12'345U;
    ports.push_back(static_cast<std::uint16_t>(lowest + (mixed >> 8) % (highest - lowest)));
  }
  return ports;
}

DIST_INLINE bool TorchrunResolver::workers_elsewhere() const {
  const std::optional<std::size_t> here = environment_.number("LOCAL_WORLD_SIZE");
  return !here || *here < environment_.number("WORLD_SIZE").value_or(*here);
}

DIST_INLINE std::string TorchrunResolver::meeting_place() const {
  const std::size_t port = number("MASTER_PORT") + (agent_listens() ? 1 : 0);
  if (port == 0 || port > 65535)
    throw InvalidArgument("The workers cannot use MASTER_PORT for their rendezvous",
                          concat("it would use port ", port, agent_listens() ? ", next to torchrun's own" : ""),
                          "Choose a port from 1 to 65534");
  return to_string(Address{environment_.require("MASTER_ADDR", why, suggestion), static_cast<std::uint16_t>(port)});
}

}  // namespace dist
