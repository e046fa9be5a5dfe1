#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
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
#include <dist/server/store_memory_handle.hpp>

namespace dist {

/// Counts the failures that a coordinator tolerates: functions that run again because a parameter server was gone, or
/// because something took too long. Thread-safe.
class TransientFailures {
 public:
  /// The `server_failures`th failure of a server is an error (spec L15), and so is every timeout after
  /// `ignored_timeouts` (spec L16).
  TransientFailures(std::size_t server_failures, std::size_t ignored_timeouts)
      : server_failures_(server_failures), ignored_timeouts_(ignored_timeouts) {}

  /// Counts a function that found a parameter server gone: true where it runs again.
  [[nodiscard]] bool tolerates_server(std::size_t server);
  /// Counts a function, or its call to a parameter server, that took too long: true where it runs again.
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

/// What a coordinator shares with the threads of its workers, which may outlive it.
class CoordinatorState {
 public:
  /// There are `workers` workers at first.
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
  std::atomic<std::size_t> connected{0};  ///< workers that are there

  [[nodiscard]] std::size_t workers() const noexcept { return workers_.load(); }
  void set_workers(std::size_t workers) noexcept { workers_ = workers; }

  /// The number of a resource that all workers make, by this message.
  [[nodiscard]] std::size_t add_resource(std::vector<std::byte> message) {
    const std::lock_guard lock{mutex_};
    resources_.push_back(std::make_shared<const std::vector<std::byte>>(std::move(message)));
    return resources_.size() - 1;
  }
  /// How to make the resource of that number, or nullptr where there is none yet.
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

/// What a ClusterCoordinator asks of its strategy, once: where workers and parameter servers are, how they are called,
/// how many replicas share a step, and how workers use the servers.
template <class S>
concept CoordinatedStrategy = rpc::Transport<typename S::Transport> && requires(const S& strategy) {
  { strategy.worker_endpoints() } -> std::convertible_to<std::vector<net::Endpoint>>;
  { strategy.server_endpoints() } -> std::convertible_to<std::vector<net::Endpoint>>;
  { strategy.channel_options() } -> std::convertible_to<rpc::ChannelOptions>;
  { strategy.num_replicas_in_sync() } -> std::convertible_to<std::size_t>;
  { strategy.worker_options() } -> std::convertible_to<server::WorkerOptions>;
};

/// One that notices by itself that a parameter server is gone, also where no function uses it. It calls what it is given last;
/// an empty function ends that.
template <class S>
concept ReportsLosses = CoordinatedStrategy<S> &&
    requires(const S& strategy, detail::UniqueFunction<void, const ServerUnavailable&> on_loss) {
  strategy.set_on_loss(on_loss);
};

/// One whose variables have copies on the workers, where it is, too: scheduled functions get its replica context.
template <class S>
concept HasWorkerStrategy = CoordinatedStrategy<S> && RemoteStore<typename S::Store>;

/// One whose workers end with it: a worker that was added later is tied to it, too.
template <class S>
concept AttendsWorkers = CoordinatedStrategy<S> && requires(const S& strategy, const net::Endpoint& worker) {
  strategy.watch_worker(std::size_t{}, worker);
};

/// A CoordinatedStrategy that is a list of workers, without variables.
template <rpc::Transport T>
class WorkerList {
 public:
  using Transport = T;

  explicit WorkerList(std::vector<net::Endpoint> workers, rpc::ChannelOptions channel = {},
                      std::vector<net::Endpoint> servers = {})
      : workers_(std::move(workers)), servers_(std::move(servers)), channel_(std::move(channel)) {}

  [[nodiscard]] const std::vector<net::Endpoint>& worker_endpoints() const noexcept { return workers_; }
  /// The servers that functions call, whose loss is not that of a worker (spec L15).
  [[nodiscard]] const std::vector<net::Endpoint>& server_endpoints() const noexcept { return servers_; }
  [[nodiscard]] const rpc::ChannelOptions& channel_options() const noexcept { return channel_; }
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return 1; }
  [[nodiscard]] server::WorkerOptions worker_options() const noexcept { return {server::default_shared_memory<T>}; }

 private:
  std::vector<net::Endpoint> workers_;
  std::vector<net::Endpoint> servers_;
  rpc::ChannelOptions channel_;
};

/// Reports that work does not get on: a thread that looks ten times in each `timeout` whether something has ended, and
/// calls `report` with the time since then where nothing has for a `timeout`, though there is something to do; again
/// after each further `timeout` (spec L19).
class ProgressWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::nanoseconds;

  struct Progress {
    std::uint64_t ended = 0;  ///< so far
    bool busy = false;        ///< there is something to do
  };

  /// `timeout` is positive. Both functions are called in the thread of the watch.
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

/// How often something was done, and how long it took.
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

/// What a coordinator and its workers have done so far (spec L21).
struct CoordinatorMetrics {
  std::size_t waiting = 0;      ///< functions that wait for a worker
  std::size_t in_flight = 0;    ///< functions that run
  std::uint64_t finished = 0;   ///< functions with a result
  std::uint64_t failed = 0;     ///< errors
  std::uint64_t cancelled = 0;  ///< functions that did not run, because of an error
  std::uint64_t put_back = 0;   ///< functions that were given to a worker again
  std::uint64_t lost = 0;       ///< losses of workers
  std::size_t workers = 0;
  std::size_t connected = 0;  ///< workers that are there now
  Durations queue_wait;       ///< of functions, until a worker takes them
  Durations execution;        ///< of functions with a result, with the way to the worker and back
  Durations recovery;         ///< of lost workers, until they are back
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/coordinator/coordinator_state.ipp>
#endif
