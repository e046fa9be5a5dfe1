#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/ids.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// Where a replica function runs: `run` hands one to each replica (spec B04, E). It says which replica this is, and does
/// what replicas do together. Collective calls must be made by every replica in the same order (spec E12).
///
/// All calls resolve at compile time. Under a strategy with one replica `num_replicas_in_sync()` is a constant and the
/// collectives are identities.
template <class S>
class ReplicaContext {
 public:
  using Strategy = S;
  using Collectives = typename S::Collectives;
  using Device = typename S::Device;

  ReplicaContext(S& strategy, Collectives collectives) : strategy_(&strategy), collectives_(collectives) {}

  [[nodiscard]] S& strategy() const noexcept { return *strategy_; }
  [[nodiscard]] const Collectives& collectives() const noexcept { return collectives_; }

  /// 0 to `num_replicas_in_sync() - 1`, over all processes (spec E01).
  [[nodiscard]] ReplicaId replica_id() const noexcept { return ReplicaId{collectives_.communicator().rank()}; }
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return collectives_.communicator().size(); }
  /// This replica's number among the replicas of its process: the index of its state in a per-process array.
  [[nodiscard]] std::size_t local_index() const noexcept { return replica_id().index(); }

  /// The reduction of all replicas' values, the same on every replica (spec E03). A collective call.
  template <Reducible T, class Op>
  [[nodiscard]] T all_reduce(Op op, T value) const {
    require_op<Op, T>();
    collectives_.all_reduce(op, std::span<T>{&value, 1});
    return value;
  }
  /// The same element by element, in place. Throws CollectiveMismatch when replicas give different counts.
  template <Reducible T, class Op>
  void all_reduce(Op op, std::span<T> values) const {
    require_op<Op, T>();
    collectives_.all_reduce(op, values);
  }

  /// Reduces `gradient` over the replicas and applies it to `mirror` in one pass over memory, each replica doing a share.
  ///
  /// `update(first, mine, reduced)` is called with consecutive blocks: `mine` are this replica's elements from `first` on,
  /// to be changed in place, `reduced` the reduced gradients for them. Every replica's `mirror` must hold the same values
  /// before, and holds the same bits after. Throws ShapeMismatch when `gradient` and `mirror` differ in length. A
  /// collective call.
  template <Reducible T, class Op, class Update>
  void reduce_and_apply(Op op, std::span<T> gradient, std::span<T> mirror, Update&& update) const {
    require_op<Op, T>();
    if (gradient.size() != mirror.size())
      throw ShapeMismatch(text("The gradient of replica ", replica_id().index(), " does not fit what it is applied to"),
                          text(gradient.size(), " elements for ", mirror.size()),
                          "Give reduce_and_apply one gradient element for each element to change");
    collectives_.reduce_and_apply(op, gradient, mirror, std::forward<Update>(update));
  }

  /// Returns once every replica has called it: what they wrote before is visible to all afterwards. A collective call.
  void barrier() const { collectives_.communicator().barrier(); }

  /// Calls `body(i)` for every index of `range` on this replica's device: one vectorised loop on a Cpu. The calls must not
  /// depend on each other.
  template <class Body>
  DIST_ALWAYS_INLINE void for_each(IndexRange range, Body&& body) const {
    Device::for_each(range, std::forward<Body>(body));
  }
  template <class Body>
  DIST_ALWAYS_INLINE void for_each(std::size_t count, Body&& body) const {
    Device::for_each(IndexRange{0, count}, std::forward<Body>(body));
  }

  /// `op` over `body(i)` for every index of `range`, on this replica's device. Not a collective: `all_reduce` the result for
  /// the value over all replicas.
  template <class Op, class Body>
  [[nodiscard]] DIST_ALWAYS_INLINE auto transform_reduce(Op op, IndexRange range, Body&& body) const {
    return Device::transform_reduce(op, range, std::forward<Body>(body));
  }

  /// This replica's part of `count` things that the replicas share out among them.
  [[nodiscard]] IndexRange shard(std::size_t count) const noexcept {
    return shard_of(count, replica_id().index(), num_replicas_in_sync());
  }

 private:
  template <class Op, class T>
  static constexpr void require_op() {
    static_assert(ReduceOp<Op, T>,
                  "this reduction does not combine values of this type: Mean needs a floating-point type");
  }

  S* strategy_;
  Collectives collectives_;
};

namespace detail {
template <class C>
inline constexpr bool is_replica_context = false;
template <class S>
inline constexpr bool is_replica_context<ReplicaContext<S>> = true;
}  // namespace detail

/// The context of a replica function.
template <class C>
concept InReplica = detail::is_replica_context<std::remove_cvref_t<C>>;

}  // namespace dist
