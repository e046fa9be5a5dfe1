#pragma once

#include <cstddef>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
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
  static auto update_local_then_average(const InReplica auto&, Span copy, Span, Change&& change) {
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

/// One copy that all replicas of the one process read and change together (spec A18).
struct CentralStore {
  static constexpr bool shared = true;
  [[nodiscard]] static constexpr std::size_t copies(std::size_t) noexcept { return 1; }
  [[nodiscard]] static constexpr std::size_t copy_of(std::size_t) noexcept { return 0; }

  template <class Change>
  static void once(const InReplica auto& replica, Change&& change) {
    replica.barrier();  // the others may still read the copy
    if (replica.replica_id().index() == 0) change();
    replica.barrier();
  }
  template <InReplica Replica, class Change>
  static void share_out(const Replica& replica, std::size_t count, Change&& change) {
    if constexpr (!Replica::Device::Space::host_accessible) replica.barrier();  // the others' queues may still read
    change(replica.shard(count));
    replica.barrier();
  }
  template <class Copy, class Change>
  static void from_first(const InReplica auto& replica, Copy copy, Change&& change) {
    once(replica, [&] { change(copy); });
  }
  template <class Span, class Change>
  static auto update_local_then_average(const InReplica auto& replica, Span copy, Span own, Change&& change) {
    replica.queue().copy(copy, own);
    auto result = change(own);
    replica.all_reduce(mean, own);
    share_out(replica, own.size(), [&](IndexRange mine) {
      replica.queue().copy(own.subspan(mine.begin, mine.size()), copy.subspan(mine.begin, mine.size()));
    });
    return result;
  }

  template <class Strategy, class Variable>
  static void spread(Strategy&, const Variable&, bool) {}
};

}  // namespace dist
