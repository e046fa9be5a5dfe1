#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/core/duration.hpp>

namespace dist {

/// The threads of a process that may use its network.
enum class ThreadLevel : unsigned char {
  single,      ///< the process has one thread
  funneled,    ///< only the thread that opened the network
  serialized,  ///< any thread, one at a time
  multiple     ///< any thread
};

class PeerHealth;
class Watchdog;

/// Options of a network membership.
struct NetworkOptions {
  /// Maximum wait for another member; 0: without limit.
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
  CollectiveChecks checks = CollectiveChecks::calls;  ///< made before each collective; the same on all members
  PeerHealth* health = nullptr;                       ///< checked while waiting; must outlive the membership
  Watchdog* watchdog = nullptr;                       ///< monitors blocking calls; must outlive the membership
  std::optional<std::size_t> worker = {};  ///< number of this process in messages: its rank among all workers
  std::string host = {};                   ///< name of this machine in messages; default: its host name
};

/// A membership in a group of processes that pass messages, from which workers are created, such as mpi::Communicator.
/// In addition to collectives it has
/// - `worker(rank)` and `host(rank)`: a member's number in messages, and its host;
/// - `split(part, options)`: the membership in the group with the same `part`, in rank order, with separate messages.
///   Empty if `part` is empty. A collective call of all members;
/// - `duplicate(options)`: a membership with the same members and separate messages;
/// - `with_checks(checks)`: the same membership with other checks before collectives;
/// - `watch_processes(health)`: lets `health` monitor the processes of members on this machine;
/// - `any_thread_may_communicate()`: true if not only the thread that opened it may use it.
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
