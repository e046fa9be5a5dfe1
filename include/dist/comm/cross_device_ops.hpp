#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/comm/communicator.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/self.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

namespace detail {
/// Placeholder for a policy that was not given.
struct NoOps {};

struct KeepWeight {
  template <class T>
  T operator()(std::size_t, T weight, T) const {
    return weight;
  }
};

template <class Ops, class C>
concept PolicyFor = std::is_empty_v<Ops> && requires {
  { Ops::name } -> std::convertible_to<std::string_view>;
  typename Ops::template On<C>;
};
}  // namespace detail

/// `all_reduce` for elements of type T: values become their reduction on every member.
template <class B, class T, class Op>
concept HasAllReduce = requires(const B ops, std::span<T> values) {
  ops.all_reduce(Op{}, values);
};
/// `broadcast` for elements of type T: every member gets the values of one member.
template <class B, class T>
concept HasBroadcast = requires(const B ops, std::span<T> values) {
  ops.broadcast(std::size_t{0}, values);
};
/// `all_gather` for elements of type T: every member gets the concatenated values of all.
template <class B, class T>
concept HasAllGather = requires(const B ops, std::span<const T> mine, std::span<const std::size_t> counts,
                                std::span<T> all) {
  ops.all_gather(mine, counts, all);
};
/// `all_gather_values` for type T: every member gets one small value of each member.
template <class B, class T>
concept HasAllGatherValues = requires(const B ops, const T& mine, std::span<T> all_values) {
  ops.all_gather_values("flags", mine, all_values);
};
/// `reduce_scatter` for elements of type T: each member gets the reduction of its shard.
template <class B, class T, class Op>
concept HasReduceScatter = requires(const B ops, std::span<const T> values, NoOp use) {
  ops.reduce_scatter(Op{}, values, use);
};
/// `update_shards` for elements of type T: each member updates its shard, and all get the result.
template <class B, class T>
concept HasUpdateShards = requires(const B ops, std::span<const T> gradients, std::span<T> mirror,
                                   detail::KeepWeight update) {
  ops.update_shards(gradients, mirror, update);
};
/// `reduce_and_apply` for elements of type T: reduce, update and gather shards in one pass.
template <class B, class T, class Op>
concept FusesUpdate = requires(const B ops, std::span<const T> gradients, std::span<T> mirror,
                               detail::KeepWeight update) {
  ops.reduce_and_apply(Op{}, gradients, mirror, update);
};

/// `meet(call)` returns when all members have announced the same call. For groups of several levels, where a member
/// only meets members of its level.
template <class B>
concept MeetsForCalls = requires(const B ops, const CollectiveCall& call) {
  ops.meet(call);
};

/// Collectives with known shards. `for_each_shard(elements, rank, members, visit)` calls `visit(range)` for the
/// elements that `reduce_scatter` and `update_shards` assign to member `rank`. Two collectives get the `operation` of
/// their caller as name: `reduce_shards(operation, record, values, use)` is a `reduce_scatter` of bytes;
/// `gather_shards(operation, dtype, values)` gives every member the shards of the others. A group in place of a member
/// divides its shard further (Hierarchical).
template <class B>
concept DividesShards = requires(const B ops, const typename B::Record& record, std::span<std::byte> values,
                                 void (*visit)(IndexRange), void (*use)(std::size_t, std::span<const std::byte>)) {
  B::for_each_shard(std::size_t{1}, std::size_t{0}, std::size_t{1}, visit);
  ops.reduce_shards("reduce_shards", record, values, use);
  ops.gather_shards("gather_shards", "float32", {values, std::size_t{4}});
};

/// Operations on memory in `Where`, enqueued in the replica's queue if the host cannot access it.
template <class B, class T, class Op, class Where>
concept ReducesMemoryIn = Where::host_accessible ||
    requires(const B ops, DeviceSpan<T, Where> values, detail::KeepWeight update) {
  ops.all_reduce(Op{}, values);
  ops.broadcast(std::size_t{0}, values);
  ops.reduce_and_apply(Op{}, DeviceSpan<const T, Where>{values}, values, update);
  { ops.reduce_scatter(Op{}, values, values) } -> std::same_as<IndexRange>;
  ops.update_shards(DeviceSpan<const T, Where>{values}, values, update);
};

/// `order_queues()`: work that any member enqueued before completes before work enqueued after it.
template <class B>
concept OrdersQueues = requires(const B ops) {
  ops.order_queues();
};

/// Members' queues copy from each other's device memory. A member calls `record_ready()` before it shares an address.
/// Its `queue()` copies from another member after `wait_for_ready(member)`, followed by `record_done()`. After all have
/// called it, `wait_for_done(member)` orders this member's later work after the copies of that member.
template <class B>
concept CopiesBetweenDevices = requires(const B ops, std::size_t member) {
  ops.queue();
  ops.record_ready();
  ops.wait_for_ready(member);
  ops.record_done();
  ops.wait_for_done(member);
};

/// The collectives of a group. All members make the same calls in the same order, with the same numbers of elements;
/// otherwise they throw CollectiveMismatch.
///
/// - `all_reduce(op, values)`: values become their reduction on every member.
/// - `broadcast(root, values)`: every member gets the values of member `root`.
/// - `all_gather(mine, counts, all)`: every member gets the values of all, concatenated in rank order; member `rank`
///   gives `counts[rank]` values. `mine` may be this member's part of `all`.
/// - `all_gather_values(operation, mine, all_values)`: every member gets one small value of each, `all_values[rank]`.
///   `operation`, a literal, is the name in messages.
/// - `reduce_and_apply(op, gradients, mirror, update)`: reduces gradients and applies them in one pass (ElementUpdate).
///   Each member updates a shard of its mirror, and all mirrors get the result. Does not change the gradients. Members
///   that share memory may all pass the same mirror.
/// - If the update depends on all reduced values, for example on their norm, the pass has two halves with the same
///   shards. `reduce_scatter(op, values, use)` calls `use(first, reduced)` for consecutive spans of this member's shard
///   of the reduction, where `first` is the number of the first element; the values are not changed.
///   `update_shards(gradients, mirror, update)` updates the shard with its gradients, reading no others, and all
///   mirrors get the result. Empty shards cause no calls.
///
/// Collectives of host memory are complete when they return. Collectives of device memory are enqueued in the replica's
/// queue, the Future of this work.
template <class B>
concept Collectives = Communicator<CommunicatorOf<B>> && ReportsFailures<B> && HasAllReduce<B, float, Sum> &&
    HasBroadcast<B, float> && HasAllGather<B, float> && HasAllGatherValues<B, bool> && FusesUpdate<B, float, Sum> &&
    HasReduceScatter<B, float, Sum> && HasUpdateShards<B, float>;

/// A policy for the collectives of a communicator (spec H02): an empty struct with a `name` and a nested template
/// `On<Communicator>` that holds the state. Every policy gives the same bits on every replica and in every run. All
/// policies combine in rank order, and so give the same bits, except those with `static constexpr bool
/// sums_in_rank_order = false`.
template <class Ops, class C>
concept CrossDeviceOps = detail::PolicyFor<Ops, C> && Collectives<typename Ops::template On<C>>;

namespace detail {

/// False if `Ops` declares not to support communicators like `C`, by a `template <class C> static constexpr bool fits`,
/// which can be tested without a compile error.
template <class Ops, class C>
inline constexpr bool fits = !requires {
  requires !Ops::template fits<C>;
};

/// Fails to compile, naming the missing operation, unless the collectives are complete.
template <class On>
[[nodiscard]] constexpr bool require_operations() {
  constexpr bool tells = ReportsFailures<On>;
  constexpr bool all_reduces = HasAllReduce<On, float, Sum>;
  constexpr bool broadcasts = HasBroadcast<On, float>;
  constexpr bool gathers = HasAllGather<On, float>;
  constexpr bool exchanges = HasAllGatherValues<On, bool>;
  constexpr bool applies = FusesUpdate<On, float, Sum>;
  constexpr bool scatters = HasReduceScatter<On, float, Sum>;
  constexpr bool updates = HasUpdateShards<On, float>;
  static_assert(
      tells,
      "this policy does not report failures: with_timeout(timeout) returns its own type, and dist::Membership provides "
      "begin_attempt(), cancel(notice), cancel(exception) and is_broken(); see the concept dist::ReportsFailures");
  static_assert(all_reduces, "this policy lacks all_reduce(reduction, values): see the concept dist::Collectives");
  static_assert(broadcasts, "this policy lacks broadcast(root, values): see the concept dist::Collectives");
  static_assert(gathers, "this policy lacks all_gather(mine, counts, all): see the concept dist::Collectives");
  static_assert(exchanges,
                "this policy lacks all_gather_values(operation, mine, all_values): see the concept dist::Collectives");
  static_assert(applies,
                "this policy lacks reduce_and_apply(reduction, gradients, mirror, update): see the concept "
                "dist::Collectives");
  static_assert(scatters,
                "this policy lacks reduce_scatter(reduction, values, use): see the concept dist::Collectives");
  static_assert(updates,
                "this policy lacks update_shards(gradients, mirror, update): see the concept dist::Collectives");
  return tells && all_reduces && broadcasts && gathers && exchanges && applies && scatters && updates;
}

}  // namespace detail

}  // namespace dist
