/// What a group of replicas can do together. A communicator is a cheap handle of one member of the group; a collective
/// is called by every member, in the same order (spec E12).
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include <dist/comm/collective_call.hpp>

namespace dist {

/// A member of a group: it knows its `rank()` in 0 … `size()` - 1 and can wait for the others.
template <class C>
concept Communicator = std::copyable<C> && requires(const C comm) {
  { comm.rank() } -> std::same_as<std::size_t>;
  { comm.size() } -> std::same_as<std::size_t>;
  comm.barrier();
};

/// The members read and write each other's memory. `publish` tells the peers where this member's operands are and
/// returns when all have published (so all may touch the operands of all); `peer<T>(rank, which)` is where a peer's
/// are; `barrier` ends the access. `reclaim` is for a member that leaves before: it waits until no peer uses its
/// operands.
template <class C>
concept SharesMemory = Communicator<C> && requires(const C comm, const CollectiveCall& call, float* operand) {
  comm.publish(call, operand);
  comm.publish(call, operand, operand);
  { comm.template peer<float>(std::size_t{0}, 0) } -> std::same_as<float*>;
  { comm.reclaim() }
  noexcept;
};

/// The members exchange a few elements in one step: after `exchange(call, values)`, `received<T>(rank)` points to a
/// copy of that member's values until this member's next call. At most `C::exchange_capacity` bytes.
template <class C>
concept ExchangesSmall = Communicator<C> &&
    requires(const C comm, const CollectiveCall& call, std::span<const float> values) {
  { C::exchange_capacity } -> std::convertible_to<std::size_t>;
  comm.exchange(call, values);
  { comm.template received<float>(std::size_t{0}) } -> std::same_as<const float*>;
};

/// The members send each other bytes. `announce` tells the others what this member is about to do, and returns when all
/// are about to do the same. `start_send` and `start_receive` return at once, and `finish` when the bytes have been
/// sent or received; messages from one member to another arrive in the order in which they were sent, and as long as
/// they were. `scratch(which, bytes)` is memory for work, kept from call to call.
template <class C>
concept PassesMessages = Communicator<C> &&
    requires(const C comm, const CollectiveCall& call, std::span<const std::byte> out, std::span<std::byte> in) {
  typename C::Transfer;
  comm.announce(call);
  { comm.start_send(out, std::size_t{0}) } -> std::same_as<typename C::Transfer>;
  { comm.start_receive(in, std::size_t{0}) } -> std::same_as<typename C::Transfer>;
  requires requires(typename C::Transfer transfer) { comm.finish(transfer); };
  { comm.scratch(std::size_t{0}, std::size_t{0}) } -> std::same_as<std::byte*>;
};

/// What members that pass messages look at before each collective.
enum class CollectiveChecks : unsigned char {
  none,  ///< nothing: members that disagree get wrong values, or wait for each other until the time is up
  calls  ///< whether all make the same call
};

}  // namespace dist
