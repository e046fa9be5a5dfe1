/// Capabilities of groups of replicas. A communicator is a cheap handle of one member; all members make the same calls
/// in the same order (spec E12).
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

/// A member of a group. It has a `rank()` in 0 … `size()` - 1 and can wait for the others.
template <class C>
concept Communicator = std::copyable<C> && requires(const C comm) {
  { comm.rank() } -> std::same_as<std::size_t>;
  { comm.size() } -> std::same_as<std::size_t>;
  comm.barrier();
};

/// A group with one member, by its type: its collectives are the identity, and it never waits or reports failures.
template <class C>
concept GroupOfOne = Communicator<C> && requires {
  requires C::size()
  == 1;
};

/// A group member that reports its failures, so that the others do not wait for it. Modelled by all communicators of
/// one level and the collectives of all policies.
///
/// - `begin_attempt` starts a unit of work; after it, a failure is reported again.
/// - `cancel` reports the failure, instead of taking part in the next collective: a notice to other processes, the
///   exception itself to threads of this process.
/// - `is_broken` is true if every later collective throws, because this member gave up waiting.
/// - `with_timeout` returns the same member with another timeout (spec H13); 0: without limit.
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

/// The communicator type of collectives.
template <class B>
using CommunicatorOf = std::remove_cvref_t<decltype(std::declval<const B&>().communicator())>;
/// Collectives of a group with one member, by its type.
template <class B>
concept CollectivesOfOne = GroupOfOne<CommunicatorOf<B>>;

/// Members compare the context of their calls. `set_structure(s)`: later calls are part of a collective of values with
/// this structure; 0: none. `begin_run(kind)`, `begin_alone`, `end_run` and `begin_call` record the position of a
/// process in its program (CallSequence); they are empty if all members are in one process.
template <class C>
concept ComparesCalls = requires(const C member, std::uint64_t number) {
  member.set_structure(number);
  member.begin_run(number);
  member.begin_alone();
  member.end_run();
  member.begin_call();
};

/// `local()` is the group of members that are threads of this process; of size one if members are processes.
template <class C>
concept HasLocalGroup = requires(const C member) {
  { member.local() } -> Communicator;
};

/// Memory that a member lends to its peers during a collective, to `read`, or to read and `write`. Both may be the same
/// memory.
struct Operand {
  const void* read = nullptr;  ///< null: not readable
  void* write = nullptr;       ///< null: not writable
};

/// Members access each other's memory. `publish` shares this member's operands, and returns when all have published.
/// `peer<T>(rank)` is a peer's readable operand, `peer_to_write<T>(rank)` its writable one. `barrier` ends the access.
/// A member that leaves earlier calls `cancel_operands`, which waits until no peer uses its operands.
template <class C>
concept SharesMemory = Communicator<C> && requires(const C comm, const CollectiveCall& call, const Operand& lent) {
  comm.publish(call, lent);
  { comm.template peer<float>(std::size_t{0}) } -> std::same_as<const float*>;
  { comm.template peer_to_write<float>(std::size_t{0}) } -> std::same_as<float*>;
  { comm.cancel_operands() }
  noexcept;
};

/// Members exchange a few elements in one step: after `exchange(call, values)`, `received<T>(rank)` is a copy of that
/// member's values until the next call. At most `C::exchange_capacity` bytes.
template <class C>
concept ExchangesSmall = Communicator<C> &&
    requires(const C comm, const CollectiveCall& call, std::span<const float> values) {
  { C::exchange_capacity } -> std::convertible_to<std::size_t>;
  comm.exchange(call, values);
  { comm.template received<float>(std::size_t{0}) } -> std::same_as<const float*>;
};

/// Members access each other's memory only in a shared window. `holds(data, bytes)` is true for memory in it;
/// `stage<T>(which, elements)` returns such memory for operand `which`, 0 or 1, of the next collective.
template <class C>
concept SharesWindow = SharesMemory<C> && ExchangesSmall<C> && requires(const C comm, const void* data) {
  { comm.holds(data, std::size_t{1}) } -> std::same_as<bool>;
  { comm.template stage<float>(0, std::size_t{1}) } -> std::same_as<std::span<float>>;
};

/// Members send each other bytes. `announce` shares the next call, and returns when all members have announced the same
/// one. `start_send` and `start_receive` return at once, `wait(transfer)` when the bytes have been sent or received.
/// Messages between two members keep their order and size. `scratch(which, bytes)` is work memory, kept between calls.
/// The header of a model includes `<dist/comm/messages/message_choice.hpp>`, which defines the declared algorithms.
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
/// True if collectives, or a communicator, join several groups, and report failures between them.
template <class B>
inline constexpr bool has_levels = false;
/// True if collectives have one all_reduce_bytes(record, values) for all types, which strategies call instead of the
/// typed function.
template <class B>
inline constexpr bool reduces_bytes = false;
}  // namespace detail

/// Checks before each collective of members that pass messages.
enum class CollectiveChecks : unsigned char {
  none,  ///< none: mismatched calls give wrong values, or wait until the timeout
  calls  ///< that all members make the same call
};

}  // namespace dist
