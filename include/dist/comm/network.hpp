#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/core/duration.hpp>

namespace dist {

class PeerHealth;
class Watchdog;

/// How a member of a network waits for the others, and what messages call it.
struct NetworkOptions {
  /// The longest that a member waits for another; 0 waits as long as it takes.
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
  CollectiveChecks checks = CollectiveChecks::calls;
  PeerHealth* health = nullptr;            ///< asked while waiting; outlives the membership
  Watchdog* watchdog = nullptr;            ///< looks after calls that block; outlives the membership
  std::optional<std::size_t> worker = {};  ///< what messages call this process: its rank among all workers
  std::string host = {};                   ///< what messages call this machine; without: its host name
};

/// A membership of processes that pass messages, from which the workers of a strategy are made: mpi::Communicator is one.
/// Besides what its collectives need it says
/// - `worker(rank)` and `host(rank)`: what messages call a member, and where it runs;
/// - `split(part, options)`: a membership of those members that name the same part, in the order of their ranks, which
///   do not meet those of others; none for members that name none. A collective call of all;
/// - `duplicate(options)`: a membership of the same members, whose messages do not meet those of this one;
/// - `with_checks(checks)`: the same membership, which looks at more or less before a collective;
/// - `watch_processes(health)`: lets `health` watch the processes of those members that run on this machine;
/// - `any_thread_may_communicate()`: whether other threads than the one that opened it may use it too.
template <class N>
concept Network = PassesMessages<N> && ReportsFailures<N> && ComparesCalls<N> && HasLocalGroup<N> &&
    requires(const N network, std::size_t rank, std::optional<std::size_t> part, const NetworkOptions& options,
             PeerHealth& health) {
  { network.worker(rank) } -> std::same_as<std::size_t>;
  { network.host(rank) } -> std::convertible_to<std::string_view>;
  { network.split(part, options) } -> std::same_as<std::optional<N>>;
  { network.duplicate(options) } -> std::same_as<N>;
  { network.with_checks(CollectiveChecks::calls) } -> std::same_as<N>;
  { network.any_thread_may_communicate() } -> std::same_as<bool>;
  network.watch_processes(health);
};

}  // namespace dist
