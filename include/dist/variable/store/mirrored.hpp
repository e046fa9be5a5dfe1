#pragma once

#include <cstddef>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/index_range.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist {

/// A copy in the memory of every replica (spec A01), which changes it for itself.
struct MirroredStore {
  static constexpr bool shared = false;
  [[nodiscard]] static constexpr std::size_t copies(std::size_t replicas) noexcept { return replicas; }
  [[nodiscard]] static constexpr std::size_t copy_of(std::size_t local_replica) noexcept { return local_replica; }

  template <class Change>
  static void once(const InReplica auto&, Change&& change) {
    change();
  }
  template <class Change>
  static void share_out(const InReplica auto&, std::size_t count, Change&& change) {
    change(IndexRange{0, count});
  }
  template <class Copy, class Change>
  static void from_first(const InReplica auto& replica, Copy copy, Change&& change) {
    replica.barrier();  // finds replicas that issue other collectives before a copy changes
    if (replica.replica_id().index() == 0) change(copy);
    replica.collectives().broadcast(0, copy);
  }
  template <class Span, class Change>
  static auto own_then_mean(const InReplica auto&, Span copy, Span, Change&& change) {
    return change(copy);
  }

  /// Each replica copies for itself, so that the pages come from memory near its processor; in a run one does it for all.
  template <class Strategy, class Variable>
  static void spread(Strategy& strategy, const Variable& variable, bool is_in_run) {
    const CrossReplicaContext<Strategy> scope{strategy};
    const auto first = variable.component(scope, 0);
    if (is_in_run) {
      for (std::size_t local = 1; local < strategy.num_local_replicas(); ++local)
        detail::copy_and_wait(variable.queue(scope, local), first, variable.component(scope, local));
    } else {
      strategy.run([&](auto& replica) {
        if (replica.local_index() == 0) return;
        detail::copy_and_wait(variable.queue(replica), first, variable.component(replica));
      });
    }
  }
};

}  // namespace dist
