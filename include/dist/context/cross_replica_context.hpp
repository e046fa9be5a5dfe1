#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/core/specialization.hpp>

namespace dist {

/// Where a program is when it is outside replica functions: `scope()` gives one (spec B03). It sees all replicas at
/// once: variables are read aggregated, and written on every replica.
template <class S>
class CrossReplicaContext {
 public:
  using Strategy = S;

  explicit CrossReplicaContext(S& strategy) : strategy_(&strategy) {}

  [[nodiscard]] S& strategy() const noexcept { return *strategy_; }
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return strategy_->num_replicas_in_sync(); }
  /// The stream of work on the device of one replica of this process.
  [[nodiscard]] auto queue(std::size_t local_replica) const {
    const auto queue = strategy_->queues()[local_replica];
    queue.enter();
    return queue;
  }

 private:
  S* strategy_;
};

/// The context outside replica functions.
template <class C>
concept InCrossReplica = detail::is_specialization<std::remove_cvref_t<C>, CrossReplicaContext>;

}  // namespace dist
