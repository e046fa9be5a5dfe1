#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

namespace detail {

/// What lies one after another in memory and can be copied as bytes.
template <class Range>
concept PlainElements = requires(Range& range) {
  std::data(range);
  std::size(range);
  requires std::is_trivially_copyable_v<std::remove_pointer_t<decltype(std::data(range))>>;
};

}  // namespace detail

/// One message of a neighbour exchange: elements that lie one after another, such as a std::vector, a std::span or an
/// array, or memory of a replica's device, and the replica that they go to or come from. It views the elements; they must
/// outlive the exchange.
template <class Byte>
struct NeighborMessage {
  static constexpr bool is_sent = std::is_const_v<Byte>;
  static constexpr std::size_t unset = static_cast<std::size_t>(-1);

  NeighborMessage() = default;
  template <class Range>
  NeighborMessage(std::size_t replica, Range&& values) : peer(replica) {
    static_assert(detail::satisfied<detail::PlainElements<Range>>,
                  "neighbor_exchange takes contiguous ranges of elements that can be copied as bytes: give a std::span "
                  "or a std::vector of numbers or plain structs");
    if constexpr (detail::PlainElements<Range>) {
      using Element = std::remove_pointer_t<decltype(std::data(values))>;
      constexpr bool may_change = is_sent || !std::is_const_v<Element>;
      static_assert(may_change, "neighbor_exchange writes what it receives, and these elements are constant");
      if constexpr (may_change) data = reinterpret_cast<Byte*>(std::data(values));
      elements = static_cast<std::size_t>(std::size(values));
      element_bytes = sizeof(Element);
      on_device = detail::is_on_device<std::remove_cvref_t<Range>>;
      type = detail::hash_of(detail::type_name<std::remove_const_t<Element>>()) + on_device;
    }
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return elements * element_bytes; }

  std::size_t peer = 0;       ///< in the group that exchanges
  std::size_t owner = unset;  ///< the replica at this end, where its member of the group speaks for several
  std::size_t other = unset;  ///< the replica at the other end
  Byte* data = nullptr;
  std::size_t elements = 0;
  std::size_t element_bytes = 1;
  std::uint64_t on_device = 0;  ///< 1 where the host cannot touch the elements: only queues copy them
  std::uint64_t type = 0;       ///< a fingerprint of the elements' type, and of where they lie
};
/// Elements for a replica.
using SendTo = NeighborMessage<const std::byte>;
/// Where elements of a replica arrive.
using ReceiveFrom = NeighborMessage<std::byte>;

/// The messages of one call: a list in braces, or any contiguous range of them.
template <class Message>
class MessageList {
 public:
  MessageList(std::initializer_list<Message> messages) : messages_(messages.begin(), messages.size()) {}
  template <class Range>
    requires std::convertible_to<const Range&, std::span<const Message>> MessageList(const Range& messages)
        : messages_(messages) {}

    [[nodiscard]] std::span<const Message> all() const noexcept { return messages_; }

   private:
    std::span<const Message> messages_;
};

namespace detail {

/// The first message, in the order of senders and receivers, of which the two ends differ. Bytes that mean the same in
/// another process.
struct NeighborMismatch {
  struct End {
    std::uint64_t is_there = 0;
    std::uint64_t elements = 0;
    std::uint64_t element_bytes = 0;
    std::uint64_t on_device = 0;
  };
  std::uint64_t is_there = 0;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t number = 0;  // of the messages between the two
  End sent;
  End received;

  /// Throws it as an error that names both replicas: ShapeMismatch where the two ends have different elements,
  /// CollectiveMismatch where one end has no such message.
  [[noreturn]] void raise() const;
};

/// The messages of several members, whose owners are set, in the order of their senders and receivers, and for a pair in
/// the order in which its replicas gave them.
void sort_messages(std::vector<SendTo>& sends);
void sort_messages(std::vector<ReceiveFrom>& receives);
/// Compares sorted messages.
[[nodiscard]] NeighborMismatch first_mismatch(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives);
/// A sum over sorted messages that is 0 over those of all members where all fit together, and otherwise is not, as far
/// as 64 bits can tell.
[[nodiscard]] std::uint64_t balance_of(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives) noexcept;

/// The same for the messages of a replica that has only itself.
[[nodiscard]] NeighborMismatch mismatch_alone(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives);
/// The error of a neighbour that there is not among `size` members.
[[noreturn]] void refuse_neighbor(std::size_t peer, std::size_t size);
/// The error of memory of a device, given to replicas that work on the host.
[[noreturn]] void refuse_memory_of_device();

/// Whether what is sent fits where it is received.
[[nodiscard]] inline bool fits_into(const SendTo& sent, const ReceiveFrom& received) noexcept {
  return sent.elements == received.elements && sent.element_bytes == received.element_bytes &&
         sent.type == received.type;
}

/// `message` of the member `rank` of a group, with the replicas at both ends.
template <class Message>
[[nodiscard]] Message with_ends(Message message, std::size_t rank) noexcept {
  if (message.owner == Message::unset) message.owner = rank;
  if (message.other == Message::unset) message.other = message.peer;
  return message;
}

/// The message number `number` of those that go to, or come from, `peer`; null where there are fewer.
template <class Message>
[[nodiscard]] const Message* nth_with(std::span<const Message> messages, std::size_t peer,
                                      std::size_t number) noexcept {
  for (const Message& message : messages)
    if (message.peer == peer && number-- == 0) return &message;
  return nullptr;
}
/// How many of the messages before number `at` have the same peer.
template <class Message>
[[nodiscard]] std::size_t number_of(std::span<const Message> messages, std::size_t at) noexcept {
  std::size_t before = 0;
  for (std::size_t i = 0; i < at; ++i)
    if (messages[i].peer == messages[at].peer) ++before;
  return before;
}

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/neighbor_message.ipp>
#endif
