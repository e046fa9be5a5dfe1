// Processes of one node that meet in a WindowGroup, without MPI: forked by the test, which made their memory before.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/comm/window.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/shared_memory.hpp>

#include "support/processes.hpp"

namespace support {

struct WindowMember {
  dist::PeerHealth& health;
  dist::Arena& window;
  dist::WindowGroup& group;
  dist::WindowCommunicator comm;
};

/// Starts `count` processes, each of which exits with `body(WindowMember&)`.
template <class Body>
Processes window_processes(std::size_t count, std::chrono::nanoseconds timeout, Body&& body) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  std::vector<dist::SharedMemory> memory;
  for (std::size_t rank = 0; rank < count; ++rank) memory.emplace_back(bytes);
  return Processes(count, [&](std::size_t rank) {
    dist::PeerHealth health;
    dist::SharedMemory& mine = memory[rank];
    dist::Arena window{1, std::span{mine.data(), mine.size()}.subspan(dist::WindowGroup::header_bytes)};
    std::vector<dist::WindowGroup::Peer> peers;
    for (std::size_t peer = 0; peer < count; ++peer)
      if (peer != rank) {
        auto attached = dist::SharedMemory::attach({getpid(), memory[peer].name().descriptor, bytes});
        if (!attached) return 98;
        peers.push_back({peer, "here", std::move(*attached)});
      }
    dist::WindowGroup group{
        mine,   window,
        rank,   rank,
        "here", std::move(peers),
        health, count > 2 ? dist::detail::SpinBudget::shared_core() : dist::detail::SpinBudget::own_core(),
        timeout};
    WindowMember member{health, window, group, dist::WindowCommunicator{group}};
    return body(member);
  });
}

}  // namespace support
