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
/// In the place of a policy that was not named.
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

/// The capabilities of collectives `B`, one by one, for elements of type T. Values become their reduction on every
/// member.
template <class B, class T, class Op>
concept HasAllReduce = requires(const B ops, std::span<T> values) {
  ops.all_reduce(Op{}, values);
};
/// Values become those of one member.
template <class B, class T>
concept HasBroadcast = requires(const B ops, std::span<T> values) {
  ops.broadcast(std::size_t{0}, values);
};
/// Every member gets the values of all, concatenated.
template <class B, class T>
concept HasAllGather = requires(const B ops, std::span<const T> mine, std::span<const std::size_t> counts,
                                std::span<T> all) {
  ops.all_gather(mine, counts, all);
};
/// Every member gets one small value of each.
template <class B, class T>
concept HasAllGatherValues = requires(const B ops, const T& mine, std::span<T> all_values) {
  ops.all_gather_values("flags", mine, all_values);
};
/// Each member sees the reduction of its shard.
template <class B, class T, class Op>
concept HasReduceScatter = requires(const B ops, std::span<const T> values, NoOp use) {
  ops.reduce_scatter(Op{}, values, use);
};
/// Each member changes its shard of what all get.
template <class B, class T>
concept HasUpdateShards = requires(const B ops, std::span<const T> gradients, std::span<T> mirror,
                                   detail::KeepWeight update) {
  ops.update_shards(gradients, mirror, update);
};
/// Reduces, changes the shards and gives them to all, in one pass.
template <class B, class T, class Op>
concept FusesUpdate = requires(const B ops, std::span<const T> gradients, std::span<T> mirror,
                               detail::KeepWeight update) {
  ops.reduce_and_apply(Op{}, gradients, mirror, update);
};

/// `meet(call)`: no member goes on before it is known that all are about to make this call. For groups on several levels,
/// where members that meet on one of them do not know of the others.
template <class B>
concept MeetsForCalls = requires(const B ops, const CollectiveCall& call) {
  ops.meet(call);
};

/// Tells which elements are each member's: `for_each_shard(elements, rank, members, visit)` calls `visit(range)` for
/// those that `reduce_scatter` and `update_shards` of so many elements give to member `rank`. Two collective calls, which
/// name the `operation` that they are a part of: `reduce_shards(operation, op, values, use)` is a `reduce_scatter`;
/// `gather_shards(operation, values)` gives every member the shards that the others have of `values`. Groups of members
/// that stand for one member each divide its shard among themselves (Hierarchical).
template <class B>
concept DividesShards = requires(const B ops, std::span<float> values, void (*visit)(IndexRange),
                                 void (*use)(std::size_t, std::span<const float>)) {
  B::for_each_shard(std::size_t{1}, std::size_t{0}, std::size_t{1}, visit);
  ops.reduce_shards("reduce_shards", Sum{}, std::span<const float>{values}, use);
  ops.gather_shards("gather_shards", values);
};

/// The same for memory in `Where`: where the host cannot touch it, the work is put into the replica's queue.
template <class B, class T, class Op, class Where>
concept ReducesMemoryIn = Where::host_accessible ||
    requires(const B ops, DeviceSpan<T, Where> values, detail::KeepWeight update) {
  ops.all_reduce(Op{}, values);
  ops.broadcast(std::size_t{0}, values);
  ops.reduce_and_apply(Op{}, DeviceSpan<const T, Where>{values}, values, update);
  { ops.reduce_scatter(Op{}, values, values) } -> std::same_as<IndexRange>;
  ops.update_shards(DeviceSpan<const T, Where>{values}, values, update);
};

/// Collectives that order the queues of their members: what all put there before `order_queues()` is done before what they
/// put there next.
template <class B>
concept OrdersQueues = requires(const B ops) {
  ops.order_queues();
};

/// Collectives whose members' queues copy from each other's memory of devices. A member calls `record_ready()` before it
/// tells the others where its memory is. Its `queue()` copies from another member's after `wait_for_ready(member)`, and
/// `record_done()` follows the copies; when all have done that, `wait_for_done(member)` puts what this member does next
/// after what that one copies.
template <class B>
concept CopiesBetweenDevices = requires(const B ops, std::size_t member) {
  ops.queue();
  ops.record_ready();
  ops.wait_for_ready(member);
  ops.record_done();
  ops.wait_for_done(member);
};

/// What the members of a group do together. All members make the same calls in the same order, of as many elements each:
/// those that differ get a CollectiveMismatch.
///
/// - `all_reduce(op, values)`: values become their reduction on every member.
/// - `broadcast(root, values)`: every member gets the values of member `root`.
/// - `all_gather(mine, counts, all)`: every member gets the values of all, concatenated in rank order, of which
///   `counts[rank]` are that member's. `mine` may be this member's part of `all`.
/// - `all_gather_values(operation, mine, all_values)`: every member gets one small value of each, `all_values[rank]`. Messages call it
///   `operation`, a literal.
/// - `reduce_and_apply(op, gradients, mirror, update)`: gradients are reduced and applied in one pass, element by element
///   (ElementUpdate): each member updates a shard of its mirror, and all mirrors get the result. Leaves the gradients as
///   they were. Members that share memory may all give the same mirror.
/// - For what must be known of all reduced values before they are applied, such as their norm, the pass has two halves
///   with the same shards. `reduce_scatter(op, values, use)` calls `use(first, reduced)` with the reduction of this
///   member's shard, span by span, `first` being the number of its first element, and leaves the values as they were.
///   `update_shards(gradients, mirror, update)` updates the shard by gradients that the member has kept, of which it
///   reads no others, and all mirrors get the result. Nothing is called for a shard without elements.
///
/// Collectives of the host's memory are done when they return. Those of a device's memory are started in the replica's
/// queue, which is the Future of all that was put there.
template <class B>
concept Collectives = Communicator<CommunicatorOf<B>> && ReportsFailures<B> && HasAllReduce<B, float, Sum> &&
    HasBroadcast<B, float> && HasAllGather<B, float> && HasAllGatherValues<B, bool> && FusesUpdate<B, float, Sum> &&
    HasReduceScatter<B, float, Sum> && HasUpdateShards<B, float>;

/// A policy that says how collectives are done between the members of a communicator (spec H02): an empty struct with a
/// `name`, whose nested template `On<Communicator>` holds the state. Every policy gives the same bits on every replica
/// and in every run. Values are combined in rank order, so that the bits are those of any other policy, unless `static
/// constexpr bool sums_in_rank_order = false` says that the policy has an order of its own.
template <class Ops, class C>
concept CrossDeviceOps = detail::PolicyFor<Ops, C> && Collectives<typename Ops::template On<C>>;

namespace detail {

/// Whether `Ops` works between members like `C`, as far as it tells: a policy that works between some only has a
/// `template <class C> static constexpr bool fits`, so that it can be asked without an error of its own.
template <class Ops, class C>
inline constexpr bool fits = !requires {
  requires !Ops::template fits<C>;
};

/// Refuses a policy whose collectives lack an operation, and names it; says whether it has all.
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
  static_assert(tells,
                "this policy does not tell failures: with_timeout(timeout) returns its own type, and begin_attempt(), "
                "cancel(notice), cancel(exception) and is_broken() come with dist::Membership; see the concept "
                "dist::ReportsFailures");
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
