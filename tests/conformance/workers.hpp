// Support for several processes in the typed suites: with one process, there is one worker, and its first replica is 0.
#pragma once

#include <cstddef>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/core/reduce_op.hpp>

namespace conformance {

/// True if replicas of strategy `S` may be in other processes. False for reduction policies.
template <class S>
inline constexpr bool has_workers = false;
template <class S>
  requires requires(const S& strategy) { strategy.workers(); }
inline constexpr bool has_workers<S> = !dist::CollectivesOfOne<decltype(std::declval<const S&>().workers())>;

/// Calls `make(id)` for each replica of this process.
template <class S, class Make>
[[nodiscard]] auto per_local_replica(const S& strategy, Make&& make) {
  const std::size_t first = strategy.first_local_replica();
  using Value = decltype(make(first));
  return dist::PerReplica<Value>(strategy.num_local_replicas(), [&](std::size_t local) { return make(first + local); });
}

/// Returns the sum of the workers' counts, each from its own process: a number or a tensor. A collective call.
template <class S, class Count>
[[nodiscard]] Count sum_over_workers([[maybe_unused]] S& strategy, Count mine) {
  if constexpr (has_workers<S>) {
    Count nothing = mine;
    if constexpr (requires { nothing.elements(); }) {
      for (auto& element : nothing.elements()) element = 0;
    } else {
      nothing = 0;
    }
    return strategy.reduce(dist::sum, dist::PerReplica<Count>(strategy.num_local_replicas(), [&](std::size_t local) {
                             return local == 0 ? mine : nothing;
                           }));
  } else {
    return mine;
  }
}

}  // namespace conformance
