/// What a group of replicas can do together. A communicator is a cheap handle of one member of the group; a collective
/// is called by every member, in the same order (spec E12).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/core/duration.hpp>

namespace dist {

/// A member of a group: it knows its `rank()` in 0 … `size()` - 1 and can wait for the others.
template <class C>
concept Communicator = std::copyable<C> && requires(const C comm) {
  { comm.rank() } -> std::same_as<std::size_t>;
  { comm.size() } -> std::same_as<std::size_t>;
  comm.barrier();
};

/// The group has one member, as its type says: its collectives are the identity, and nobody is to be waited for or told.
template <class C>
concept GroupOfOne = Communicator<C> && requires {
  requires C::size()
  == 1;
};

/// A member that fails says so, instead of leaving the others to wait for it. Every communicator of one level and every
/// policy's collectives model it, with empty bodies where there is nobody to tell.
///
/// `begin_attempt` starts what may fail once: from there on a failure is reported again. `cancel` tells the others,
/// instead of taking part in the next collective, why this member does not come: a notice for those in other processes,
/// the exception itself for threads of this one. `is_broken` says whether every later collective throws, because this
/// member gave up waiting. `with_timeout` is the same member, which waits longer or shorter for others (spec H13); 0 as
/// long as it takes.
template <class C>
concept ReportsFailures = requires(const C member, const FailureNotice& notice, const std::exception_ptr& why,
                                   std::chrono::nanoseconds timeout) {
  { member.begin_attempt() }
  noexcept;
  { member.cancel(notice) }
  noexcept;
  { member.cancel(why) }
  noexcept;
  { member.is_broken() }
  noexcept->std::same_as<bool>;
  { member.with_timeout(timeout) } -> std::same_as<C>;
};

/// The communicator of collectives.
template <class B>
using CommunicatorOf = std::remove_cvref_t<decltype(std::declval<const B&>().communicator())>;
/// Collectives of a group that has one member, as the type says.
template <class B>
concept CollectivesOfOne = GroupOfOne<CommunicatorOf<B>>;

/// The members compare what their calls are parts of. `set_structure(s)`: calls from here on are parts of a collective
/// of values with this structure; 0: of none. `begin_run(kind)`, `begin_alone`, `end_run` and `begin_call` record the
/// position of a process in its program (CallSequence); they are empty where all members are in one process.
template <class C>
concept ComparesCalls = requires(const C member, std::uint64_t number) {
  member.set_structure(number);
  member.begin_run(number);
  member.begin_alone();
  member.end_run();
  member.begin_call();
};

/// Says which members are threads of this process: `local()` is the group of these, a group of one where each member is
/// a process.
template <class C>
concept HasLocalGroup = requires(const C member) {
  { member.local() } -> Communicator;
};

/// The memory that a member lends to its peers in one collective. Peers read `read`, and read and write `write`; both may be
/// the same memory.
struct Operand {
  const void* read = nullptr;
  void* write = nullptr;
};

/// The members read and write each other's memory. `publish` tells the peers where this member's operands are and
/// returns when all have published (so all may touch the operands of all); `peer<T>(rank)` is the memory that a peer lends
/// to be read, and `peer_to_write<T>(rank)` the memory that it lends to be written; `barrier` ends the access.
/// `cancel_operands` is for a member that leaves before: it waits until no peer uses its operands.
template <class C>
concept SharesMemory = Communicator<C> && requires(const C comm, const CollectiveCall& call, const Operand& lent) {
  comm.publish(call, lent);
  { comm.template peer<float>(std::size_t{0}) } -> std::same_as<const float*>;
  { comm.template peer_to_write<float>(std::size_t{0}) } -> std::same_as<float*>;
  { comm.cancel_operands() }
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

/// The members see each other's memory only where it lies in a window: `holds(data, bytes)` says whether that is so,
/// and `stage<T>(which, elements)` is memory there for operand `which`, 0 or 1, of the next collective.
template <class C>
concept SharesWindow = SharesMemory<C> && ExchangesSmall<C> && requires(const C comm, const void* data) {
  { comm.holds(data, std::size_t{1}) } -> std::same_as<bool>;
  { comm.template stage<float>(0, std::size_t{1}) } -> std::same_as<std::span<float>>;
};

/// The members send each other bytes. `announce` tells the others what this member is about to do, and returns when all
/// are about to do the same. `start_send` and `start_receive` return at once, and `wait(transfer)` when the bytes have been
/// sent or received; messages from one member to another arrive in the order in which they were sent, and as long as
/// they were. `scratch(which, bytes)` is memory for work, kept from call to call. The header of a model includes
/// <dist/comm/messages/message_choice.hpp>: what policies do there, which they only declare.
template <class C>
concept PassesMessages = Communicator<C> &&
    requires(const C comm, const CollectiveCall& call, std::span<const std::byte> out, std::span<std::byte> in) {
  typename C::Transfer;
  comm.announce(call);
  { comm.start_send(out, std::size_t{0}) } -> std::same_as<typename C::Transfer>;
  { comm.start_receive(in, std::size_t{0}) } -> std::same_as<typename C::Transfer>;
  requires requires(typename C::Transfer transfer) { comm.wait(transfer); };
  { comm.scratch(std::size_t{0}, std::size_t{0}) } -> std::same_as<std::byte*>;
};

namespace detail {
/// Whether collectives, or a communicator, join several groups: a failure in one is told to the others.
template <class B>
inline constexpr bool has_levels = false;
}  // namespace detail

/// What members that pass messages look at before each collective.
enum class CollectiveChecks : unsigned char {
  none,  ///< nothing: members that disagree get wrong values, or wait for each other until the time is up
  calls  ///< whether all make the same call
};

}  // namespace dist
