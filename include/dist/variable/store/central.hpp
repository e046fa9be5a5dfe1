#pragma once

#include <cstddef>
#include <span>

#include <dist/context/replica_context.hpp>
#include <dist/core/algorithms.hpp>
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
  template <class Change>
  static void share_out(const InReplica auto& replica, std::size_t count, Change&& change) {
    change(replica.shard(count));
    replica.barrier();
  }
  template <class Copy, class Change>
  static void from_first(const InReplica auto& replica, Copy copy, Change&& change) {
    once(replica, [&] { change(copy); });
  }
  template <class T, class Change>
  static auto own_then_mean(const InReplica auto& replica, std::span<T> copy, std::span<T> own, Change&& change) {
    std::copy(copy.begin(), copy.end(), own.begin());
    auto result = change(own);
    replica.all_reduce(mean, own);
    share_out(replica, own.size(),
              [&](IndexRange mine) { std::copy_n(own.data() + mine.begin, mine.size(), copy.data() + mine.begin); });
    return result;
  }

  template <class Strategy, class Variable>
  static void spread(Strategy&, const Variable&, bool) {}
};

}  // namespace dist
