/// How the copies of an OnRead variable become one value (spec G.2).
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/comm/communicator.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist::detail {

/// Whether every replica's copy may hold another value, so that the value of all must be made first.
template <class Variable, class Context>
inline constexpr bool copies_may_differ =
    std::same_as<typename Variable::Synchronization, OnRead> && !StoreOf<Context>::shared;

/// Outside replica functions: all copies, in replica order, into `aggregated`. A collective call of the processes of
/// the strategy.
template <class Variable, InCrossReplica Context, class T>
void aggregate_copies(const Variable& variable, const Context& context, std::span<T> aggregated) {
  using Agg = typename Variable::Aggregation;
  static_assert(!std::same_as<Agg, None>,
                "an OnRead variable with aggregation None has no value outside replica functions: give it the "
                "aggregation Sum, Mean or OnlyFirstReplica, or read it in a replica function");
  const auto& workers = context.strategy().workers();
  if constexpr (std::same_as<Agg, Sum> || std::same_as<Agg, Mean>) {
    using Wide = Accumulator<T>;
    constexpr bool one_process = CollectivesOfOne<decltype(workers)>;
    constexpr std::size_t block = 256;
    Wide combined[block];
    const bool is_large = !one_process && aggregated.size() > block;
    const HostCopies copies{variable, context};
    AlignedBuffer<Wide> of_process(is_large ? aggregated.size() : 0);
    for (std::size_t first = 0; first < aggregated.size(); first += block) {
      const std::size_t count = std::min(block, aggregated.size() - first);
      for (std::size_t copy = 0; copy < variable.copies(); ++copy) {
        const std::span<const T> elements = copies[copy].subspan(first, count);
        for (std::size_t i = 0; i < count; ++i)
          combined[i] = copy == 0 ? Wide{elements[i]} : Agg{}(combined[i], Wide{elements[i]});
      }
      if constexpr (one_process)
        for (std::size_t i = 0; i < count; ++i)
          aggregated[first + i] = static_cast<T>(Agg::finish(combined[i], variable.copies()));
      else if (is_large)
        std::copy_n(combined, count, of_process.data() + first);
    }
    if constexpr (!one_process) {
      const std::span<Wide> sums{is_large ? of_process.data() : combined, aggregated.size()};
      run_collectively(context.strategy(), [&] { workers.all_reduce(Unfinished<Agg>{}, sums); });
      for (std::size_t i = 0; i < aggregated.size(); ++i)
        aggregated[i] = static_cast<T>(Agg::finish(sums[i], context.num_replicas_in_sync()));
    }
  } else {
    copy_and_wait(variable.queue(context, 0), variable.component(context, 0), aggregated);
    run_collectively(context.strategy(), [&] { workers.broadcast(0, aggregated); });
  }
}

/// In a replica function: `copy`, this replica's, becomes the value of all. A collective call.
template <class Variable, InReplica Context, class T>
void aggregate_over_replicas(const Variable&, const Context& replica, std::span<T> copy) {
  using Agg = typename Variable::Aggregation;
  static_assert(
      !std::same_as<Agg, None>,
      "an OnRead variable with aggregation None has no synchronized value: give it the aggregation Sum, Mean or "
      "OnlyFirstReplica, or read the replica's own copy");
  if constexpr (std::same_as<Agg, OnlyFirstReplica>) {
    replica.collectives().broadcast(0, copy);
  } else if constexpr (!std::same_as<Agg, None>) {
    replica.collectives().all_reduce(Agg{}, copy);
  }
}

}  // namespace dist::detail
