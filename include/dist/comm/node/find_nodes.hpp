#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/group_layout.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/network.hpp>
#include <dist/comm/node/communicator.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/device/shared_memory.hpp>
#include <dist/device/wait.hpp>

namespace dist {

/// The nodes of a communicator: members of a node run on one host, see the same processes, and map each other's memory.
/// A process that cannot, such as in a separate container, is a node by itself.
struct FoundNodes {
  GroupLayout layout;                  ///< the nodes, in the order of their lowest ranks
  std::vector<NodeGroup::Peer> peers;  ///< the other processes of this node, by rank
};

namespace detail {

/// The data that processes exchange in `find_nodes`.
struct NodeCandidate {
  std::array<char, 256> host{};
  std::uint64_t process_space = 0;  // identifies the process number space; 0: shares memory with no process
  SharedMemory::Name memory{};
  std::uint64_t stamp = 0;  // also written to the memory: a process that reads it there has mapped the right memory
};

[[nodiscard]] inline bool may_share(const NodeCandidate& one, const NodeCandidate& other) noexcept {
  return one.process_space != 0 && one.process_space == other.process_space &&
         std::string_view{one.host.data()} == other.host.data();
}

}  // namespace detail

/// Returns the nodes of `world`. `mine` is this process's memory; eight bytes at `stamp_at` are used temporarily and
/// zeroed again. With `separate`, every process is a node by itself. A collective call.
template <Network N>
[[nodiscard]] FoundNodes find_nodes(const N& world, SharedMemory& mine, std::size_t stamp_at, bool separate) {
  const HalvingDoublingAllReduce::On<N> ops{world};
  const std::size_t rank = world.rank();
  detail::NodeCandidate me;
  const std::string_view host = world.host(rank);
  std::memcpy(me.host.data(), host.data(), std::min(host.size(), me.host.size() - 1));
  me.process_space = separate ? 0 : process_space();
  me.memory = mine.name();
  me.stamp = static_cast<std::uint64_t>(detail::monotonic_nanoseconds()) << 16 | (rank + 1);
  std::memcpy(mine.data() + stamp_at, &me.stamp, sizeof(me.stamp));
  std::vector<detail::NodeCandidate> all(world.size());
  ops.all_gather_values("search for nodes", me, std::span{all});

  std::vector<NodeGroup::Peer> peers;
  bool reached_all = true;
  for (std::size_t other = 0; other < all.size(); ++other) {
    if (other == rank || !detail::may_share(me, all[other])) continue;
    std::optional<SharedMemory> memory = SharedMemory::attach(all[other].memory);
    reached_all = reached_all && memory &&
                  std::memcmp(memory->data() + stamp_at, &all[other].stamp, sizeof(all[other].stamp)) == 0;
    if (memory) peers.push_back({world.worker(other), std::string{world.host(other)}, std::move(*memory)});
  }
  std::vector<std::uint8_t> reached(world.size());
  ops.all_gather_values("nodes found", static_cast<std::uint8_t>(reached_all), std::span{reached});
  std::memset(mine.data() + stamp_at, 0, sizeof(me.stamp));

  // All members compute the same nodes, from which members may share memory and whether all of those could map it.
  std::vector<std::size_t> ranks, sizes;
  std::vector<bool> placed(world.size());
  std::size_t my_node = 0;
  std::size_t my_number = 0;
  for (std::size_t first = 0; first < all.size(); ++first) {
    if (placed[first]) continue;
    std::vector<std::size_t> members;
    bool all_reached = true;
    for (std::size_t other = 0; other < all.size(); ++other)
      if (other == first || detail::may_share(all[first], all[other])) {
        members.push_back(other);
        all_reached = all_reached && reached[other] != 0;
      }
    if (!all_reached) members = {first};  // the other members become nodes by themselves, too
    for (std::size_t number = 0; number < members.size(); ++number) {
      placed[members[number]] = true;
      if (members[number] != rank) continue;
      my_node = sizes.size();
      my_number = number;
      if (members.size() == 1) peers.clear();
    }
    ranks.insert(ranks.end(), members.begin(), members.end());
    sizes.push_back(members.size());
  }
  return {GroupLayout{std::move(ranks), std::move(sizes), my_node, my_number}, std::move(peers)};
}

}  // namespace dist
