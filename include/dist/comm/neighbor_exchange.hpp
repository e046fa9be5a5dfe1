/// Exchange of elements between neighbours in any graph, such as the halo of a domain divided among replicas.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/neighbor_message.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/self_on_queue.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

namespace detail {

inline constexpr std::string_view neighbor_exchange_name = "neighbor_exchange";
inline constexpr std::string_view end_of_neighbor_exchange = "end of neighbor_exchange";

/// Elements on devices are compared like all messages, but copied by queues.
inline void copy_message(const std::byte* from, const ReceiveFrom& to) noexcept {
  if (to.bytes() != 0 && to.on_device == 0) std::memmove(to.data, from, to.bytes());
}
template <class Q>
void copy_on(const Q& queue, const std::byte* from, const ReceiveFrom& to) {
  using Where = typename Q::Space;
  queue.copy(DeviceSpan<const std::byte, Where>{from, to.bytes()}, DeviceSpan<std::byte, Where>{to.data, to.bytes()});
}
template <class Message>
[[nodiscard]] std::size_t count_on_devices(std::span<const Message> messages) noexcept {
  std::size_t count = 0;
  for (const Message& message : messages) count += message.on_device;
  return count;
}

/// A member's messages, and an error that it has found, as lent to its peers.
class NeighborTable {
 public:
  NeighborTable(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives, const NeighborMismatch& found)
      : self_(this),
        sends_(sends.data()),
        send_count_(sends.size()),
        receives_(receives.data()),
        receive_count_(receives.size()),
        found_(found) {}
  NeighborTable(const NeighborTable&) = delete;
  NeighborTable& operator=(const NeighborTable&) = delete;

  /// Translates an owner's address for the reader: each process maps the window as one piece.
  template <class T>
  [[nodiscard]] T* seen(T* place) const noexcept {
    const auto distance = reinterpret_cast<std::uintptr_t>(place) - reinterpret_cast<std::uintptr_t>(self_);
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(this) + distance);
  }
  [[nodiscard]] std::span<const SendTo> sends() const noexcept { return {seen(sends_), send_count_}; }
  [[nodiscard]] std::span<const ReceiveFrom> receives() const noexcept { return {seen(receives_), receive_count_}; }
  [[nodiscard]] const NeighborMismatch& found() const noexcept { return found_; }

 private:
  const NeighborTable* self_;
  const SendTo* sends_;
  std::size_t send_count_;
  const ReceiveFrom* receives_;
  std::size_t receive_count_;
  NeighborMismatch found_;
};

/// A member's messages where peers can access them: in place for threads, in the window for processes. There `take`
/// copies out messages that peers wrote, those with `written_by_peer(receive)`.
template <class C>
class LentMessages {
 public:
  template <class WrittenByPeer>
  LentMessages(const C&, std::span<const SendTo> sends, std::span<const ReceiveFrom> receives,
               const NeighborMismatch& found, WrittenByPeer&&)
      : table_(sends, receives, found) {}

  [[nodiscard]] const NeighborTable* table() const noexcept { return &table_; }
  void take() const noexcept {}

 private:
  NeighborTable table_;
};

template <SharesWindow C>
class LentMessages<C> {
 public:
  template <class WrittenByPeer>
  LentMessages(const C& comm, std::span<const SendTo> sends, std::span<const ReceiveFrom> receives,
               const NeighborMismatch& found, WrittenByPeer&& written_by_peer)
      : receives_(receives) {
    const auto is_copied = [&](const auto& message) {
      return message.on_device == 0 && !comm.holds(message.data, message.bytes());
    };
    std::size_t bytes =
        room_for(sizeof(NeighborTable)) + room_for(sends.size_bytes()) + room_for(receives.size_bytes());
    for (const SendTo& send : sends)
      if (is_copied(send)) bytes += room_for(send.bytes());
    for (const ReceiveFrom& receive : receives)
      if (written_by_peer(receive) && is_copied(receive)) bytes += room_for(receive.bytes());

    std::byte* free = comm.template stage<std::byte>(0, bytes).data();
    const auto take_room = [&](std::size_t size) { return std::exchange(free, free + room_for(size)); };
    std::byte* const table = take_room(sizeof(NeighborTable));
    auto* const lent_sends = reinterpret_cast<SendTo*>(take_room(sends.size_bytes()));
    auto* const lent_receives = reinterpret_cast<ReceiveFrom*>(take_room(receives.size_bytes()));
    for (std::size_t i = 0; i < sends.size(); ++i) {
      SendTo* const lent = new (lent_sends + i) SendTo{sends[i]};
      if (sends[i].bytes() == 0 || !is_copied(sends[i])) continue;
      std::byte* const copy = take_room(sends[i].bytes());
      std::memcpy(copy, sends[i].data, sends[i].bytes());
      lent->data = copy;
    }
    for (std::size_t i = 0; i < receives.size(); ++i) {
      ReceiveFrom* const lent = new (lent_receives + i) ReceiveFrom{receives[i]};
      if (written_by_peer(receives[i]) && is_copied(receives[i])) lent->data = take_room(receives[i].bytes());
    }
    lent_receives_ = lent_receives;
    table_ = new (table) NeighborTable{{lent_sends, sends.size()}, {lent_receives, receives.size()}, found};
  }

  [[nodiscard]] const NeighborTable* table() const noexcept { return table_; }
  void take() const noexcept {
    for (std::size_t i = 0; i < receives_.size(); ++i)
      if (lent_receives_[i].data != receives_[i].data) copy_message(lent_receives_[i].data, receives_[i]);
  }

 private:
  [[nodiscard]] static constexpr std::size_t room_for(std::size_t bytes) noexcept {
    return (bytes + cache_line - 1) / cache_line * cache_line;
  }

  std::span<const ReceiveFrom> receives_;
  const ReceiveFrom* lent_receives_ = nullptr;
  NeighborTable* table_ = nullptr;
};

/// Copies the message for `receives[at]` from its peer's table, for which this member has number `me`. Returns the
/// message; null if none matches.
inline const SendTo* receive_from_table(const NeighborTable& table, std::span<const ReceiveFrom> receives,
                                        std::size_t at, std::size_t me) noexcept {
  const ReceiveFrom& receive = receives[at];
  const SendTo* const send = nth_with(table.sends(), me, number_of(receives, at));
  if (send == nullptr || !fits_into(*send, receive) || send->owner != receive.other || send->other != receive.owner)
    return nullptr;
  copy_message(table.seen(send->data), receive);
  return send;
}

/// Message exchange of a group with the collectives `Ops`. `run(ops, sends, receives, found)` returns the first
/// mismatch, the same on all members, including a mismatch `found` before by a member. After a mismatch, received data
/// must not be used.
///
/// Members that share memory copy from each other after one meeting, and compare message counts in a second one.
/// Members that pass messages compare a checksum before sending. Queues copy elements on devices after these checks.
template <class Ops>
struct NeighborExchange {
  using C = CommunicatorOf<Ops>;
  static constexpr bool takes_memory_of_devices = CopiesBetweenDevices<Ops>;

  [[nodiscard]] static NeighborMismatch run(const Ops& ops, std::span<const SendTo> sends,
                                            std::span<const ReceiveFrom> receives, const NeighborMismatch& found);

 private:
  struct Counts {
    std::uint64_t sent;
    std::uint64_t received;
    std::uint64_t wrong;
    std::uint64_t on_devices;  // part of `sent`
  };
  /// A copy by this member's queue.
  struct Arrival {
    const ReceiveFrom* to;
    const std::byte* from;
  };

  [[nodiscard]] static NeighborMismatch in_one_memory(const Ops& ops, std::span<const SendTo> sends,
                                                      std::span<const ReceiveFrom> receives,
                                                      const NeighborMismatch& found) {
    const C& comm = ops.communicator();
    const CollectiveCall call{.operation = neighbor_exchange_name};
    LentMessages<C> lent{comm, sends, receives, found, [](const ReceiveFrom&) { return false; }};
    Counts mine{sends.size(), 0, found.is_there, count_on_devices(sends)};
    std::vector<Arrival> arrivals;
    if constexpr (takes_memory_of_devices)
      if (mine.on_devices != 0) ops.record_ready();
    const Borrowed loan{comm};
    comm.publish(call, {.read = lent.table()});
    for (std::size_t at = 0; at < receives.size(); ++at) {
      const NeighborTable& theirs = *comm.template peer<NeighborTable>(receives[at].peer);
      const SendTo* const send = receive_from_table(theirs, receives, at, comm.rank());
      if (send == nullptr) continue;
      ++mine.received;
      if constexpr (takes_memory_of_devices)
        if (send->on_device != 0) arrivals.push_back({&receives[at], send->data});
    }
    mine.wrong += receives.size() - mine.received;
    comm.exchange(CollectiveCall{.operation = end_of_neighbor_exchange}, std::span<const Counts>{&mine, 1});
    Counts all{};
    for (std::size_t rank = 0; rank < comm.size(); ++rank) {
      const Counts& theirs = *comm.template received<Counts>(rank);
      all.sent += theirs.sent;
      all.received += theirs.received;
      all.wrong += theirs.wrong;
      all.on_devices += theirs.on_devices;
    }
    if (all.sent == all.received && all.wrong == 0) [[likely]] {
      if constexpr (takes_memory_of_devices)
        if (all.on_devices != 0) copy_between_devices(ops, sends, receives, arrivals);
      return {};
    }
    comm.publish(call, {.read = lent.table()});  // again: all search for the mismatch, and find the same
    const NeighborMismatch mismatch = look_for_mismatch(comm);
    comm.barrier();
    return mismatch;
  }
  /// Enqueues the copies after the senders' earlier work, and orders this member's later work after copies from its
  /// memory. Messages must match, and stay valid until all have reached the barrier.
  static void copy_between_devices(const Ops& ops, std::span<const SendTo> sends, std::span<const ReceiveFrom> receives,
                                   const std::vector<Arrival>& arrivals) {
    const C& comm = ops.communicator();
    const auto for_each_peer = [&](const auto& messages, auto&& use) {
      for (std::size_t rank = 0; rank < comm.size(); ++rank)
        if (std::any_of(messages.begin(), messages.end(),
                        [&](const auto& message) { return message.on_device != 0 && message.peer == rank; }))
          use(rank);
    };
    for_each_peer(receives, [&](std::size_t rank) { ops.wait_for_ready(rank); });
    for (const Arrival& arrival : arrivals) copy_on(ops.queue(), arrival.from, *arrival.to);
    if (!arrivals.empty()) ops.record_done();
    comm.barrier();
    for_each_peer(sends, [&](std::size_t rank) { ops.wait_for_done(rank); });
  }
  [[nodiscard]] static NeighborMismatch look_for_mismatch(const C& comm) {
    std::vector<SendTo> sends;
    std::vector<ReceiveFrom> receives;
    for (std::size_t rank = 0; rank < comm.size(); ++rank) {
      const NeighborTable& table = *comm.template peer<NeighborTable>(rank);
      if (table.found().is_there != 0) return table.found();
      for (const SendTo& send : table.sends()) sends.push_back(with_ends(send, rank));
      for (const ReceiveFrom& receive : table.receives()) receives.push_back(with_ends(receive, rank));
    }
    sort_messages(sends);
    sort_messages(receives);
    return first_mismatch(sends, receives);
  }

  /// Maximum bytes per message: MPI counts in int.
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  [[nodiscard]] static NeighborMismatch by_messages(const Ops& ops, std::span<const SendTo> sends,
                                                    std::span<const ReceiveFrom> receives,
                                                    const NeighborMismatch& found) {
    const auto& comm = ops.communicator();
    std::vector<SendTo> sorted_sends;
    std::vector<ReceiveFrom> sorted_receives;
    for (const SendTo& send : sends) sorted_sends.push_back(with_ends(send, comm.rank()));
    for (const ReceiveFrom& receive : receives) sorted_receives.push_back(with_ends(receive, comm.rank()));
    sort_messages(sorted_sends);
    sort_messages(sorted_receives);
    {
      const PartOfExchange part{comm};
      std::array<std::uint64_t, 2> sums{found.is_there, balance_of(sorted_sends, sorted_receives)};
      ops.all_reduce(sum, std::span<std::uint64_t>{sums});
      if (sums[0] != 0 || sums[1] != 0) return gather_mismatch(ops, sorted_sends, sorted_receives, found);
    }
    std::vector<typename C::Transfer> transfers;
    const auto for_each_piece = [](std::size_t bytes, auto&& use) {
      for (std::size_t first = 0; first < bytes; first += most_bytes) use(first, std::min(most_bytes, bytes - first));
    };
    const auto travels = [&](const auto& message) { return message.peer != comm.rank() && message.on_device == 0; };
    for (const ReceiveFrom& receive : receives)
      if (travels(receive))
        for_each_piece(receive.bytes(), [&](std::size_t first, std::size_t count) {
          transfers.push_back(comm.start_receive({receive.data + first, count}, receive.peer));
        });
    for (const SendTo& send : sends)
      if (travels(send))
        for_each_piece(send.bytes(), [&](std::size_t first, std::size_t count) {
          transfers.push_back(comm.start_send({send.data + first, count}, send.peer));
        });
    for (std::size_t at = 0; at < receives.size(); ++at)
      if (receives[at].peer == comm.rank())
        copy_message(nth_with(sends, comm.rank(), number_of(receives, at))->data, receives[at]);
    for (typename C::Transfer& transfer : transfers) comm.wait(transfer);
    return {};
  }
  /// Marks calls as part of a neighbour exchange during its lifetime, so that they match no other calls.
  class PartOfExchange {
   public:
    explicit PartOfExchange(const C& comm) : comm_(comm) { comm_.set_structure(hash_of(neighbor_exchange_name)); }
    PartOfExchange(const PartOfExchange&) = delete;
    PartOfExchange& operator=(const PartOfExchange&) = delete;
    ~PartOfExchange() { comm_.set_structure(0); }

   private:
    const C& comm_;
  };

  /// Gathers all messages on every member, so that all find the same mismatch.
  [[nodiscard]] static NeighborMismatch gather_mismatch(const Ops& ops, std::span<const SendTo> sends,
                                                        std::span<const ReceiveFrom> receives,
                                                        const NeighborMismatch& found) {
    struct Summary {
      std::uint64_t sends;
      std::uint64_t receives;
      NeighborMismatch found;
    };
    const std::size_t members = ops.communicator().size();
    std::vector<Summary> all_values(members);
    ops.all_gather_values(neighbor_exchange_name, Summary{sends.size(), receives.size(), found},
                          std::span<Summary>{all_values});
    for (const Summary& summary : all_values)
      if (summary.found.is_there != 0) return summary.found;

    static_assert(sizeof(SendTo) == sizeof(ReceiveFrom) && sizeof(SendTo) % sizeof(std::uint64_t) == 0);
    constexpr std::size_t words = sizeof(SendTo) / sizeof(std::uint64_t);
    std::vector<std::uint64_t> mine((sends.size() + receives.size()) * words);
    if (!sends.empty()) std::memcpy(mine.data(), sends.data(), sends.size_bytes());
    if (!receives.empty()) std::memcpy(mine.data() + sends.size() * words, receives.data(), receives.size_bytes());
    std::vector<std::size_t> counts;
    std::size_t total = 0;
    for (const Summary& summary : all_values) total += counts.emplace_back((summary.sends + summary.receives) * words);
    std::vector<std::uint64_t> all(total);
    ops.all_gather(std::span<const std::uint64_t>{mine}, std::span<const std::size_t>{counts},
                   std::span<std::uint64_t>{all});
    std::vector<SendTo> all_sends;
    std::vector<ReceiveFrom> all_receives;
    const std::uint64_t* next = all.data();
    for (const Summary& summary : all_values) {
      const auto take = [&](auto& messages, std::uint64_t count) {
        messages.resize(messages.size() + count);
        void* const place = messages.data() + messages.size() - count;
        if (count != 0) std::memcpy(place, next, count * sizeof(SendTo));
        next += count * words;
      };
      take(all_sends, summary.sends);
      take(all_receives, summary.receives);
    }
    sort_messages(all_sends);
    sort_messages(all_receives);
    return first_mismatch(all_sends, all_receives);
  }
};

template <class Ops>
NeighborMismatch NeighborExchange<Ops>::run(const Ops& ops, std::span<const SendTo> sends,
                                            std::span<const ReceiveFrom> receives, const NeighborMismatch& found) {
  constexpr bool in_memory = SharesMemory<C> && ExchangesSmall<C>;
  static_assert(in_memory || PassesMessages<C>,
                "neighbor_exchange needs members that share memory or pass messages: see the concepts "
                "dist::SharesMemory and dist::PassesMessages");
  if constexpr (in_memory)
    return in_one_memory(ops, sends, receives, found);
  else if constexpr (PassesMessages<C>)
    return by_messages(ops, sends, receives, found);
  else
    return {};
}

/// Exchanges messages in a group of one. If all match, calls `copy(from, to)` for each.
template <class Copy>
[[nodiscard]] NeighborMismatch exchange_alone(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives,
                                              Copy&& copy) {
  bool fits = sends.size() == receives.size();
  for (std::size_t at = 0; fits && at < sends.size(); ++at) fits = fits_into(sends[at], receives[at]);
  if (!fits) [[unlikely]]
    return mismatch_alone(sends, receives);
  for (std::size_t at = 0; at < sends.size(); ++at) copy(sends[at].data, receives[at]);
  return {};
}
template <>
struct NeighborExchange<SelfCollectives> {
  static constexpr bool takes_memory_of_devices = false;

  [[nodiscard]] static NeighborMismatch run(const SelfCollectives&, std::span<const SendTo> sends,
                                            std::span<const ReceiveFrom> receives, const NeighborMismatch&) {
    return exchange_alone(sends, receives, copy_message);
  }
};
template <class Q>
struct NeighborExchange<SelfOnQueue<Q>> {
  static constexpr bool takes_memory_of_devices = true;

  [[nodiscard]] static NeighborMismatch run(const SelfOnQueue<Q>& ops, std::span<const SendTo> sends,
                                            std::span<const ReceiveFrom> receives, const NeighborMismatch&) {
    return exchange_alone(sends, receives, [&](const std::byte* from, const ReceiveFrom& to) {
      if (to.on_device != 0)
        copy_on(ops.queue(), from, to);
      else
        copy_message(from, to);
    });
  }
};

}  // namespace detail

/// Exchanges elements with neighbours in any graph. The n-th message from a member to another one arrives at that
/// member's n-th receive from it. `sends` and `receives` are ordered independently, so a ring of one or two, in which
/// both neighbours are the same, works too: sends to the left and the right, receives from the right and the left.
/// Members may send to themselves, or have no neighbours. Sent and received ranges must not overlap on any member.
///
/// Elements in host memory have arrived when this returns. Elements in device memory, at both ends of a message, are
/// copied by the receiver's queue: later work in the queues of both ends follows the copy, and the host does not wait
/// for devices.
///
/// Throws on all members, naming both ends of a message: ShapeMismatch if the ends differ in number or type of
/// elements, CollectiveMismatch if one end has no such message. Received data must then not be used. Throws
/// InvalidArgument if a peer is out of range, and for device memory if the members work on the host. A collective call.
template <class Ops>
void neighbor_exchange(const Ops& ops, std::span<const SendTo> sends, std::span<const ReceiveFrom> receives) {
  const std::size_t size = ops.communicator().size();
  const auto require = [&](const auto& messages) {
    for (const auto& message : messages) {
      if (message.peer >= size) [[unlikely]]
        detail::refuse_neighbor(message.peer, size);
      if (!detail::NeighborExchange<Ops>::takes_memory_of_devices && message.on_device != 0) [[unlikely]]
        detail::refuse_memory_of_device();
    }
  };
  require(sends);
  require(receives);
  const detail::NeighborMismatch mismatch =
      detail::NeighborExchange<Ops>::run(ops, sends, receives, detail::NeighborMismatch{});
  if (mismatch.is_there != 0) [[unlikely]]
    mismatch.raise();
}

}  // namespace dist

#ifdef DIST_COMPILED
#include <dist/comm/memory/thread_all_reduce.hpp>
extern template dist::detail::NeighborMismatch
dist::detail::NeighborExchange<dist::ThreadAllReduce::On<dist::ThreadCommunicator>>::run(
    const dist::ThreadAllReduce::On<dist::ThreadCommunicator>&, std::span<const dist::SendTo>,
    std::span<const dist::ReceiveFrom>, const dist::detail::NeighborMismatch&);
#endif
