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

/// A contiguous range of elements that can be copied as bytes.
template <class Range>
concept PlainElements = requires(Range& range) {
  std::data(range);
  std::size(range);
  requires std::is_trivially_copyable_v<std::remove_pointer_t<decltype(std::data(range))>>;
};

}  // namespace detail

/// One message of a neighbour exchange: contiguous elements, such as a std::vector, a std::span, an array or device
/// memory, and the replica that sends or receives them. A view: the elements must outlive the exchange.
template <class Byte>
struct NeighborMessage {
  /// True for SendTo, false for ReceiveFrom.
  static constexpr bool is_sent = std::is_const_v<Byte>;
  /// The value of `owner` and `other` for group members with one replica each.
  static constexpr std::size_t unset = static_cast<std::size_t>(-1);

  NeighborMessage() = default;
  /// A message to or from `replica`. `values` are its elements, which the call must be able to copy as bytes.
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

  /// The size of the message.
  [[nodiscard]] std::size_t bytes() const noexcept { return elements * element_bytes; }

  std::size_t peer = 0;           ///< rank in the exchanging group
  std::size_t owner = unset;      ///< the replica at this end, if the group member represents several
  std::size_t other = unset;      ///< the replica at the other end
  Byte* data = nullptr;           ///< first element; null: none
  std::size_t elements = 0;       ///< number of elements
  std::size_t element_bytes = 1;  ///< size of an element
  std::uint64_t on_device = 0;    ///< 1 if the host cannot access the elements
  std::uint64_t type = 0;         ///< hash of the element type and the kind of memory
};
/// Elements to send to a replica.
using SendTo = NeighborMessage<const std::byte>;
/// Memory for elements from a replica.
using ReceiveFrom = NeighborMessage<std::byte>;

/// The messages of one call: a braced list or contiguous range.
template <class Message>
class MessageList {
 public:
  /// The messages of a braced list, which live until the end of the call.
  MessageList(std::initializer_list<Message> messages) : messages_(messages.begin(), messages.size()) {}
  /// The messages of a contiguous range, which must outlive the list.
  template <class Range>
    requires std::convertible_to<const Range&, std::span<const Message>> MessageList(const Range& messages)
        : messages_(messages) {}

    /// The messages in their given order.
    [[nodiscard]] std::span<const Message> all() const noexcept { return messages_; }

   private:
    std::span<const Message> messages_;
};

namespace detail {

/// The first message, by sender and receiver, whose ends do not match. Bytes that other processes can read.
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
  std::uint64_t number = 0;  // within this pair
  End sent;
  End received;

  /// Throws an error naming both replicas: ShapeMismatch if the ends have different elements, CollectiveMismatch if one
  /// end has no such message.
  [[noreturn]] void raise() const;
};

/// Sorts messages of several members, with owners set, by sender and receiver, stable within a pair.
void sort_messages(std::vector<SendTo>& sends);
void sort_messages(std::vector<ReceiveFrom>& receives);
[[nodiscard]] NeighborMismatch first_mismatch(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives);
/// Returns a hash of sorted messages, whose sum over all members is 0 if all match, otherwise nonzero with high
/// probability (64 bits).
[[nodiscard]] std::uint64_t balance_of(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives) noexcept;

/// Returns the first mismatch of a replica that only exchanges with itself.
[[nodiscard]] NeighborMismatch mismatch_alone(std::span<const SendTo> sends, std::span<const ReceiveFrom> receives);
/// Throws InvalidArgument for a `peer` out of range.
[[noreturn]] void refuse_neighbor(std::size_t peer, std::size_t size);
/// Throws InvalidArgument for device memory of replicas that work on the host.
[[noreturn]] void refuse_memory_of_device();

[[nodiscard]] inline bool fits_into(const SendTo& sent, const ReceiveFrom& received) noexcept {
  return sent.elements == received.elements && sent.element_bytes == received.element_bytes &&
         sent.type == received.type;
}

/// Returns `message` of member `rank` with the replicas at both ends set.
template <class Message>
[[nodiscard]] Message with_ends(Message message, std::size_t rank) noexcept {
  if (message.owner == Message::unset) message.owner = rank;
  if (message.other == Message::unset) message.other = message.peer;
  return message;
}

/// Returns message number `number` to or from `peer`, or null.
template <class Message>
[[nodiscard]] const Message* nth_with(std::span<const Message> messages, std::size_t peer,
                                      std::size_t number) noexcept {
  for (const Message& message : messages)
    if (message.peer == peer && number-- == 0) return &message;
  return nullptr;
}
/// Returns the number of messages before `at` with the same peer.
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
