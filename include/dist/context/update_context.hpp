#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/core/specialization.hpp>

namespace dist {

/// Where `strategy.update` calls its function: once for each copy of a variable, outside replica functions (spec B06).
/// A variable operation that takes this context acts on that one copy, without aggregation.
template <class S>
class UpdateContext {
 public:
  using Strategy = S;

  UpdateContext(S& strategy, std::size_t local_replica) : strategy_(&strategy), local_replica_(local_replica) {}

  [[nodiscard]] S& strategy() const noexcept { return *strategy_; }
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return strategy_->num_replicas_in_sync(); }
  /// The number of the copy among those of this process.
  [[nodiscard]] std::size_t local_index() const noexcept { return local_replica_; }
  /// The stream of work on the device of the copy.
  [[nodiscard]] auto queue() const {
    const auto queue = strategy_->queues()[local_replica_];
    queue.enter();
    return queue;
  }

 private:
  S* strategy_;
  std::size_t local_replica_;
};

/// The context of the function that `strategy.update` calls.
template <class C>
concept InUpdate = detail::is_specialization<std::remove_cvref_t<C>, UpdateContext>;

}  // namespace dist
