#pragma once

#include <cstddef>

#include <dist/context/replica_context.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

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
    if constexpr (!Replica::Device::Place::host_accessible) replica.barrier();  // the others' queues may still read
    change(replica.shard(count));
    replica.barrier();
  }
  template <class Copy, class Change>
  static void from_first(const InReplica auto& replica, Copy copy, Change&& change) {
    once(replica, [&] { change(copy); });
  }
  template <class Span, class Change>
  static auto own_then_mean(const InReplica auto& replica, Span copy, Span own, Change&& change) {
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
