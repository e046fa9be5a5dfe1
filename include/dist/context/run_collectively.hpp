#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <type_traits>

#include <dist/comm/communication_options.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/context/replica_function.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::detail {

/// Returns the result of `call`, which all processes of a strategy make together. A process that cannot make it
/// notifies the others, which would otherwise wait. Concurrent threads take turns.
template <class S, class Call>
auto run_collectively(const S& strategy, Call&& call) {
  if constexpr (!CollectivesOfOne<decltype(strategy.workers())>) {
    const auto turn = strategy.replicas_part().take_turn();
    strategy.workers().begin_attempt();
    if (run_here.strategy != &strategy) strategy.workers().communicator().begin_call();
    try {
      return call();
    } catch (const std::exception& error) {
      strategy.workers().cancel(error);
      throw;
    } catch (...) {
      strategy.workers().cancel("an object that is not a std::exception");
      throw;
    }
  } else {
    return call();
  }
}

/// Returns the result of `call(workers)`, a collective call with the timeout of `options`.
template <class S, class Call>
auto run_collectively(const S& strategy, const CommunicationOptions& options, Call&& call) {
  return run_collectively(strategy, [&] { return as_asked(strategy.workers(), options, call); });
}

/// Returns the first process's `call()`, a number or bool, in all processes of a strategy. A collective call of the
/// processes, outside replica functions.
template <class S, class Call>
auto broadcast_from_chief(const S& strategy, Call&& call) {
  return run_collectively(strategy, [&] {
    std::uint64_t result = strategy.is_chief() ? std::uint64_t{call()} : std::uint64_t{0};
    strategy.workers().broadcast(0, std::span<std::uint64_t>{&result, 1});
    return static_cast<std::invoke_result_t<Call&>>(result);
  });
}

/// True if `holds` is true in any process of a strategy. A collective call of the processes, outside replica functions.
/// Throws PeerError if one of them cannot take part.
template <class S>
[[nodiscard]] bool any_process(const S& strategy, bool holds) {
  int any = holds ? 1 : 0;
  run_collectively(strategy, [&] { strategy.workers().all_reduce(max, std::span<int>{&any, 1}); });
  return any != 0;
}

}  // namespace dist::detail
