#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <dist/context/strategy.hpp>
#include <dist/coordinator/closure_queue.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/client.hpp>
#include <dist/server/coordinator_options.hpp>
#include <dist/server/error.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist {

/// Counts the failures that a coordinator tolerates: functions that run again after the loss of a parameter server or a
/// timeout. Thread-safe.
class TransientFailures {
 public:
  /// Failure number `server_failures` of a server is an error (spec L15), and so are timeouts after the first
  /// `ignored_timeouts` (spec L16).
  TransientFailures(std::size_t server_failures, std::size_t ignored_timeouts)
      : server_failures_(server_failures), ignored_timeouts_(ignored_timeouts) {}

  /// Counts a function that found a parameter server unavailable. True if it may run again.
  [[nodiscard]] bool tolerates_server(std::size_t server);
  /// Counts a timeout of a function, or of its call to a parameter server. True if it may run again.
  [[nodiscard]] bool tolerates_timeout();

 private:
  const std::size_t server_failures_;
  const std::size_t ignored_timeouts_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> of_servers_;
  std::size_t timeouts_ = 0;
};

}  // namespace dist

namespace dist::detail {

/// The state shared by a coordinator and the threads of its workers, which may outlive it.
class CoordinatorState {
 public:
  /// `workers` is the initial number of workers.
  CoordinatorState(const CoordinatorOptions& its_options, rpc::ChannelOptions its_channel, std::size_t replicas,
                   std::vector<net::Endpoint> its_servers, std::size_t workers,
                   server::WorkerOptions its_worker_options = {})
      : options(its_options),
        channel(std::move(its_channel)),
        replicas_in_sync(replicas),
        servers(std::move(its_servers)),
        worker_options(its_worker_options),
        queue(options.queue_capacity),
        failures(options.server_failures, options.ignored_timeouts.value_or(workers / 10)),
        workers_(workers) {}

  const CoordinatorOptions options;
  const rpc::ChannelOptions channel;
  const std::size_t replicas_in_sync;
  const std::vector<net::Endpoint> servers;
  const server::WorkerOptions worker_options;
  ClosureQueue queue;
  TransientFailures failures;
  std::atomic<std::size_t> connected{0};  ///< number of connected workers

  [[nodiscard]] std::size_t workers() const noexcept { return workers_.load(); }
  void set_workers(std::size_t workers) noexcept { workers_ = workers; }

  /// Adds a resource that all workers create, and returns its number.
  [[nodiscard]] std::size_t add_resource(std::vector<std::byte> message) {
    const std::lock_guard lock{mutex_};
    resources_.push_back(std::make_shared<const std::vector<std::byte>>(std::move(message)));
    return resources_.size() - 1;
  }
  /// The message that creates a resource, or nullptr if it does not exist yet.
  [[nodiscard]] std::shared_ptr<const std::vector<std::byte>> resource(std::size_t number) const {
    const std::lock_guard lock{mutex_};
    return number < resources_.size() ? resources_[number] : nullptr;
  }

 private:
  std::atomic<std::size_t> workers_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> resources_;
};

}  // namespace dist::detail

namespace dist {

/// The requirements of a ClusterCoordinator on its strategy: the transport (`Transport`), the addresses of workers and
/// parameter servers (`worker_endpoints`, `server_endpoints`), the options of connections (`channel_options`), the
/// number of replicas in a step, and the workers' options for the servers (`worker_options`). Each is queried once.
template <class S>
concept CoordinatedStrategy = rpc::Transport<typename S::Transport> && requires(const S& strategy) {
  { strategy.worker_endpoints() } -> std::convertible_to<std::vector<net::Endpoint>>;
  { strategy.server_endpoints() } -> std::convertible_to<std::vector<net::Endpoint>>;
  { strategy.channel_options() } -> std::convertible_to<rpc::ChannelOptions>;
  { strategy.num_replicas_in_sync() } -> std::convertible_to<std::size_t>;
  { strategy.worker_options() } -> std::convertible_to<server::WorkerOptions>;
};

/// A strategy that detects the loss of idle parameter servers. It reports to the last function that was set; an empty
/// function ends the reports.
template <class S>
concept ReportsLosses = CoordinatedStrategy<S> &&
    requires(const S& strategy, detail::UniqueFunction<void, const ServerUnavailable&> on_loss) {
  strategy.set_on_loss(on_loss);
};

/// A strategy with copies of its variables and of itself on the workers. Scheduled functions get its replica context.
template <class S>
concept HasWorkerStrategy = CoordinatedStrategy<S> && RemoteStore<typename S::Store>;

/// A strategy whose workers exit with it, including workers added later.
template <class S>
concept AttendsWorkers = CoordinatedStrategy<S> && requires(const S& strategy, const net::Endpoint& worker) {
  strategy.watch_worker(std::size_t{}, worker);
};

/// A strategy that consists of a list of workers, without variables.
template <rpc::Transport T>
class WorkerList {
 public:
  using Transport = T;

  /// `channel` are the options of connections to the workers, `servers` the servers that functions call.
  explicit WorkerList(std::vector<net::Endpoint> workers, rpc::ChannelOptions channel = {},
                      std::vector<net::Endpoint> servers = {})
      : workers_(std::move(workers)), servers_(std::move(servers)), channel_(std::move(channel)) {}

  [[nodiscard]] const std::vector<net::Endpoint>& worker_endpoints() const noexcept { return workers_; }
  /// The servers that functions call. Their loss is distinguished from the loss of a worker (spec L15).
  [[nodiscard]] const std::vector<net::Endpoint>& server_endpoints() const noexcept { return servers_; }
  [[nodiscard]] const rpc::ChannelOptions& channel_options() const noexcept { return channel_; }
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return 1; }
  [[nodiscard]] server::WorkerOptions worker_options() const noexcept { return {server::default_shared_memory<T>}; }

 private:
  std::vector<net::Endpoint> workers_;
  std::vector<net::Endpoint> servers_;
  rpc::ChannelOptions channel_;
};

/// Reports missing progress (spec L19). A thread checks ten times per `timeout` for progress. After a `timeout` without
/// progress despite work, it calls `report` with the time since the last progress, and again after each further
/// `timeout`.
class ProgressWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::nanoseconds;

  /// The state that `look` returns.
  struct Progress {
    std::uint64_t ended = 0;  ///< number of finished functions
    bool busy = false;        ///< true if there is work
  };

  /// `timeout` must be positive. Both functions run in the thread of the watch.
  ProgressWatch(Duration timeout, detail::UniqueFunction<Progress> look, detail::UniqueFunction<void, Duration> report);
  ProgressWatch(const ProgressWatch&) = delete;
  ProgressWatch& operator=(const ProgressWatch&) = delete;
  ~ProgressWatch();

 private:
  void run();

  const Duration timeout_;
  const detail::UniqueFunction<Progress> look_;
  const detail::UniqueFunction<void, Duration> report_;
  std::mutex mutex_;
  detail::ConditionVariable changed_;
  bool ending_ = false;
  std::thread thread_;
};

/// Statistics of the duration of an operation.
struct Durations {
  using Duration = std::chrono::nanoseconds;

  std::uint64_t count = 0;
  Duration total{0};
  Duration longest{0};

  void add(Duration duration) {
    ++count;
    total += duration;
    longest = std::max(longest, duration);
  }
  void add(const Durations& others) {
    count += others.count;
    total += others.total;
    longest = std::max(longest, others.longest);
  }
  [[nodiscard]] Duration mean() const { return count == 0 ? Duration{0} : total / static_cast<std::int64_t>(count); }
};

/// Metrics of a coordinator and its workers since the start (spec L21).
struct CoordinatorMetrics : ClosureQueue::Counts {
  std::uint64_t put_back = 0;  ///< repeated runs of functions
  std::uint64_t lost = 0;      ///< losses of workers
  std::size_t workers = 0;
  std::size_t connected = 0;  ///< workers connected now
  Durations queue_wait = {};  ///< of functions until a worker takes them
  Durations execution = {};   ///< of successful functions, including communication
  Durations recovery = {};    ///< of lost workers until they reconnect
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/coordinator/coordinator_state.ipp>
#endif
