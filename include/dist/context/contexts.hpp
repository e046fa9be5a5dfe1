#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/core/index_range.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

/// The argument of the function of `values_from_function` (spec C19).
class ValueContext {
 public:
  /// The context for the value of replica `replica_id`, of `num_replicas_in_sync` replicas.
  constexpr ValueContext(ReplicaId replica_id, std::size_t num_replicas_in_sync)
      : replica_id_(replica_id), num_replicas_in_sync_(num_replicas_in_sync) {}

  /// The replica that gets the value.
  [[nodiscard]] constexpr ReplicaId replica_id() const noexcept { return replica_id_; }
  /// The number of replicas of all processes.
  [[nodiscard]] constexpr std::size_t num_replicas_in_sync() const noexcept { return num_replicas_in_sync_; }

 private:
  ReplicaId replica_id_;
  std::size_t num_replicas_in_sync_;
};

/// The context of the function of `strategy.update`, called once per copy of a variable, outside replica functions
/// (spec B06). Variable operations change this copy only, without aggregation.
template <class S>
class UpdateContext {
 public:
  /// The type of the strategy.
  using Strategy = S;

  /// The context for the copy of one replica of this process, numbered from 0.
  UpdateContext(S& strategy, std::size_t local_replica) : strategy_(&strategy), local_replica_(local_replica) {}

  /// The strategy whose `update` calls the function.
  [[nodiscard]] S& strategy() const noexcept { return *strategy_; }
  /// The number of replicas of all processes.
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return strategy_->num_replicas_in_sync(); }
  /// The number of the copy's replica in this process.
  [[nodiscard]] std::size_t local_index() const noexcept { return local_replica_; }
  /// The queue of the copy's device.
  [[nodiscard]] auto queue() const {
    const auto queue = strategy_->queues()[local_replica_];
    queue.enter();
    return queue;
  }

 private:
  S* strategy_;
  std::size_t local_replica_;
};

/// True for the context of `strategy.update`.
template <class C>
concept InUpdate = detail::is_specialization<std::remove_cvref_t<C>, UpdateContext>;

/// The context outside replica functions, returned by `scope()` (spec B03). Reading a variable aggregates it, and
/// writing changes it on every replica.
template <class S>
class CrossReplicaContext {
 public:
  /// The type of the strategy.
  using Strategy = S;

  /// The context of `strategy`, which must outlive it; returned by `strategy.scope()`.
  explicit CrossReplicaContext(S& strategy) : strategy_(&strategy) {}

  /// The strategy that the context belongs to.
  [[nodiscard]] S& strategy() const noexcept { return *strategy_; }
  /// The number of replicas of all processes.
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return strategy_->num_replicas_in_sync(); }
  /// The queue of a local replica's device.
  [[nodiscard]] auto queue(std::size_t local_replica) const {
    const auto queue = strategy_->queues()[local_replica];
    queue.enter();
    return queue;
  }

 private:
  S* strategy_;
};

/// True for the context outside replica functions.
template <class C>
concept InCrossReplica = detail::is_specialization<std::remove_cvref_t<C>, CrossReplicaContext>;

}  // namespace dist
