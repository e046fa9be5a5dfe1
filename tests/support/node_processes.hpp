// Processes of one node that form a NodeGroup without MPI: forked by the test, which has created their memory.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/comm/node/communicator.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/shared_memory.hpp>

#include "support/processes.hpp"

namespace support {

struct NodeMember {
  dist::PeerHealth& health;
  dist::Arena& window;
  dist::NodeGroup& group;
  dist::NodeCommunicator comm;
};

/// Starts `count` processes, each of which exits with `body(NodeMember&)`.
template <class Body>
Processes node_processes(std::size_t count, std::chrono::nanoseconds timeout, Body&& body) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  std::vector<dist::SharedMemory> memory;
  for (std::size_t rank = 0; rank < count; ++rank) memory.emplace_back(bytes);
  return Processes(count, [&](std::size_t rank) {
    dist::PeerHealth health;
    dist::SharedMemory& mine = memory[rank];
    dist::Arena window{1, std::span{mine.data(), mine.size()}.subspan(dist::NodeGroup::header_bytes)};
    std::vector<dist::NodeGroup::Peer> peers;
    for (std::size_t peer = 0; peer < count; ++peer)
      if (peer != rank) {
        auto attached = dist::SharedMemory::attach({getpid(), memory[peer].name().descriptor, bytes});
        if (!attached) return 98;
        peers.push_back({peer, "here", std::move(*attached)});
      }
    dist::NodeGroup group{
        mine,   window,
        rank,   rank,
        "here", std::move(peers),
        health, count > 2 ? dist::detail::SpinBudget::shared_core() : dist::detail::SpinBudget::own_core(),
        timeout};
    NodeMember member{health, window, group, dist::NodeCommunicator{group}};
    return body(member);
  });
}

}  // namespace support
