/// Neighbour exchange in groups of groups (Hierarchical).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <dist/comm/hierarchical.hpp>
#include <dist/comm/neighbor_exchange.hpp>
#include <dist/comm/neighbor_message.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>

namespace dist::detail {

/// Members of a group copy from each other's memory. Member 0 reads the messages of its group there, and exchanges
/// messages with other groups on the level above, directly from and to the owners' memory.
template <class Lower, class Upper>
struct NeighborExchange<Hierarchical<Lower, Upper>> {
  using Groups = Hierarchical<Lower, Upper>;
  static constexpr bool takes_memory_of_devices = false;

  [[nodiscard]] static NeighborMismatch run(const Groups& ops, std::span<const SendTo> sends,
                                            std::span<const ReceiveFrom> receives, const NeighborMismatch& found);

 private:
  [[nodiscard]] static NeighborMismatch on_both_levels(const Groups& ops, std::span<const SendTo> sends,
                                                       std::span<const ReceiveFrom> receives,
                                                       const NeighborMismatch& found) {
    const GroupLayout& layout = ops.layout();
    const auto& comm = ops.lower_.communicator();
    const auto is_elsewhere = [&](const ReceiveFrom& receive) {
      return layout.place_of(receive.peer).group != layout.group();
    };
    LentMessages<std::remove_cvref_t<decltype(comm)>> lent{comm, sends, receives, found, is_elsewhere};
    const Borrowed loan{comm};
    comm.publish({.operation = neighbor_exchange_name}, {.read = lent.table()});
    for (std::size_t at = 0; at < receives.size(); ++at) {
      const GroupLayout::GroupRank place = layout.place_of(receives[at].peer);
      if (place.group == layout.group())
        receive_from_table(*comm.template peer<NeighborTable>(place.member), receives, at, layout.rank());
    }
    NeighborMismatch mismatch;
    if (ops.leads()) mismatch = exchange_between_groups(ops);
    const auto& patient = ops.patient_.communicator();
    patient.exchange(CollectiveCall{.operation = end_of_neighbor_exchange},
                     std::span<const NeighborMismatch>{&mismatch, 1});
    mismatch = *patient.template received<NeighborMismatch>(0);
    lent.take();
    return mismatch;
  }

  /// A group's messages, as collected by member 0.
  template <class Message>
  struct Messages {
    std::vector<Message> here;
    std::vector<Message> elsewhere;

    void add(const GroupLayout& layout, Message message, std::size_t rank) {
      const std::size_t group = layout.place_of(message.peer).group;
      message = with_ends(message, rank);
      message.peer = group;
      (group == layout.group() ? here : elsewhere).push_back(message);
    }
  };

  [[nodiscard]] static NeighborMismatch exchange_between_groups(const Groups& ops) {
    const GroupLayout& layout = ops.layout();
    const auto& comm = ops.lower_.communicator();
    NeighborMismatch mismatch;
    Messages<SendTo> sends;
    Messages<ReceiveFrom> receives;
    for (std::size_t member = 0; member < comm.size(); ++member) {
      const NeighborTable& table = *comm.template peer<NeighborTable>(member);
      const std::size_t rank = layout.members(layout.group())[member];
      if (mismatch.is_there == 0) mismatch = table.found();
      for (SendTo send : table.sends()) {
        send.data = table.seen(send.data);
        sends.add(layout, send, rank);
      }
      for (ReceiveFrom receive : table.receives()) {
        receive.data = table.seen(receive.data);
        receives.add(layout, receive, rank);
      }
    }
    for (auto* messages : {&sends.here, &sends.elsewhere}) sort_messages(*messages);
    for (auto* messages : {&receives.here, &receives.elsewhere}) sort_messages(*messages);
    if (mismatch.is_there == 0) mismatch = first_mismatch(sends.here, receives.here);
    return NeighborExchange<Upper>::run(*ops.upper_, sends.elsewhere, receives.elsewhere, mismatch);
  }
};

template <class Lower, class Upper>
NeighborMismatch NeighborExchange<Hierarchical<Lower, Upper>>::run(const Groups& ops, std::span<const SendTo> sends,
                                                                   std::span<const ReceiveFrom> receives,
                                                                   const NeighborMismatch& found) {
  NeighborMismatch mismatch;
  ops.by_shape(
      [&]<class Level>(const Level& level) { mismatch = NeighborExchange<Level>::run(level, sends, receives, found); },
      [&] { mismatch = on_both_levels(ops, sends, receives, found); });
  return mismatch;
}

}  // namespace dist::detail
