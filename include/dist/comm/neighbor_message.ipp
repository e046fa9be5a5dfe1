#pragma once

#include <string>
#include <utility>

#include <dist/comm/neighbor_message.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/text.hpp>

namespace dist::detail {

DIST_INLINE void NeighborMismatch::raise() const {
  const auto described = [](const End& end) {
    return concat(end.elements, end.elements == 1 ? " element of " : " elements of ", end.element_bytes,
                  end.element_bytes == 1 ? " byte" : " bytes", end.on_device != 0 ? " on a device" : "");
  };
  const std::string which = concat("message ", number, " from replica ", from, " to replica ", to);
  if (sent.is_there != 0 && received.is_there != 0) {
    const bool other_type = sent.elements == received.elements && sent.element_bytes == received.element_bytes &&
                            sent.on_device == received.on_device;
    throw ShapeMismatch(concat("Replica ", to, " does not expect the message that replica ", from, " sends to it"),
                        concat(which, " has ", described(sent), ", but the receiver expects ", described(received),
                               other_type ? ", of another type" : ""),
                        "Send and receive the same number of elements of the same type, in the same order, both in "
                        "memory of the host or both in memory of devices");
  }
  throw CollectiveMismatch("The replicas do not agree on their neighbours",
                           sent.is_there != 0 ? concat("replica ", from, " sends ", which, ", of ", described(sent),
                                                       ", which replica ", to, " does not receive")
                                              : concat("replica ", to, " receives ", which, ", of ",
                                                       described(received), ", which replica ", from, " does not send"),
                           "Let each replica receive every message that another replica sends to it, and no others");
}

DIST_INLINE void sort_messages(std::vector<SendTo>& sends) {
  std::stable_sort(sends.begin(), sends.end(), [](const SendTo& a, const SendTo& b) {
    return std::pair{a.owner, a.other} < std::pair{b.owner, b.other};
  });
}
DIST_INLINE void sort_messages(std::vector<ReceiveFrom>& receives) {
  std::stable_sort(receives.begin(), receives.end(), [](const ReceiveFrom& a, const ReceiveFrom& b) {
    return std::pair{a.other, a.owner} < std::pair{b.other, b.owner};
  });
}

DIST_INLINE NeighborMismatch first_mismatch(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives) {
  using Pair = std::pair<std::size_t, std::size_t>;
  Pair before{NeighborMessage<std::byte>::unset, 0};
  std::uint64_t number = 0;
  for (std::size_t s = 0, r = 0; s < sends.size() || r < receives.size();) {
    const Pair none{NeighborMessage<std::byte>::unset, NeighborMessage<std::byte>::unset};
    const Pair sent = s < sends.size() ? Pair{sends[s].owner, sends[s].other} : none;
    const Pair received = r < receives.size() ? Pair{receives[r].other, receives[r].owner} : none;
    const Pair pair = std::min(sent, received);
    number = pair == before ? number + 1 : 0;
    before = pair;
    const bool is_sent = sent == pair;
    const bool is_received = received == pair;
    if (!is_sent || !is_received || !fits_into(sends[s], receives[r])) {
      NeighborMismatch mismatch{1, pair.first, pair.second, number, {}, {}};
      const auto end_of = [](const auto& message) {
        return NeighborMismatch::End{1, message.elements, message.element_bytes, message.on_device};
      };
      if (is_sent) mismatch.sent = end_of(sends[s]);
      if (is_received) mismatch.received = end_of(receives[r]);
      return mismatch;
    }
    ++s;
    ++r;
  }
  return {};
}

DIST_INLINE std::uint64_t balance_of(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives) noexcept {
  const auto mixed = [](std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93U;
    return hash ^ (hash >> 29);
  };
  const auto sum_of = [&](const auto& messages, auto&& from, auto&& to) {
    std::uint64_t sum = 0;
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto& message = messages[i];
      const bool again = i != 0 && from(messages[i - 1]) == from(message) && to(messages[i - 1]) == to(message);
      number = again ? number + 1 : 0;
      std::uint64_t hash = message.type;
      for (const std::uint64_t word : {std::uint64_t{from(message)}, std::uint64_t{to(message)}, number,
                                       std::uint64_t{message.elements}, std::uint64_t{message.element_bytes}})
        hash = mixed(hash, word);
      sum += hash;
    }
    return sum;
  };
  const auto owner = [](const auto& message) { return message.owner; };
  const auto other = [](const auto& message) { return message.other; };
  return sum_of(sends, owner, other) - sum_of(receives, other, owner);
}

DIST_INLINE NeighborMismatch mismatch_alone(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives) {
  std::vector<SendTo> sent;
  std::vector<ReceiveFrom> received;
  for (const SendTo& send : sends) sent.push_back(with_ends(send, 0));
  for (const ReceiveFrom& receive : receives) received.push_back(with_ends(receive, 0));
  return first_mismatch(sent, received);
}

DIST_INLINE void refuse_neighbor(std::size_t peer, std::size_t size) {
  throw InvalidArgument("A neighbour does not exist", concat("replica ", peer, " of ", size),
                        "Give neighbours from 0 to num_replicas_in_sync() - 1");
}

DIST_INLINE void refuse_memory_of_device() {
  throw InvalidArgument(
      "neighbor_exchange was given device memory",
      "the replicas of this strategy work in host memory, and have no queue that copies device memory",
      "Give buffers of the strategy that runs the replica function, or use a strategy whose replicas are on such "
      "devices, such as Mirrored<DirectAllReduce, Cuda>");
}

}  // namespace dist::detail
