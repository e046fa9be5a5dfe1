/// What a group of replicas can do together. A communicator is a cheap handle of one member of the group; a collective
/// is called by every member, in the same order (spec E12).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <dist/core/reduce_op.hpp>

namespace dist {

/// What a member is about to do, for its peers to compare with what they are about to do, and for messages.
struct CollectiveCall {
  std::string_view operation;       ///< "all_reduce"
  std::string_view reduction = {};  ///< "sum"; empty where nothing is reduced
  std::size_t elements = 0;         ///< of each member
  std::string_view dtype = {};      ///< of the elements
  std::size_t root = 0;             ///< of a broadcast
  std::uint64_t counts = 0;         ///< of an all_gather: a checksum of the members' counts
  friend constexpr bool operator==(const CollectiveCall&, const CollectiveCall&) = default;

  /// A number that differs for calls that differ, as far as 64 bits can, and is the same for equal ones where their
  /// names are the same literals: a name is identified by where it begins.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    const auto address = [](std::string_view name) { return reinterpret_cast<std::uintptr_t>(name.data()); };
    return address(operation) * 0x9e3779b97f4a7c15U + address(reduction) * 0xbf58476d1ce4e5b9U +
           address(dtype) * 0x94d049bb133111ebU + elements * 0xc2b2ae3d27d4eb4fU + root * 0x165667b19e3779f9U +
           counts * 0xd6e8feb86659fd93U;
  }
};

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

}  // namespace dist
