#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/coordinator/closure_queue.hpp>
#include <dist/coordinator/coordinator_state.hpp>
#include <dist/coordinator/per_worker.hpp>
#include <dist/coordinator/remote_value.hpp>
#include <dist/coordinator/worker_copy.hpp>
#include <dist/coordinator/worker_link.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/server/coordinator_options.hpp>

namespace dist {

/// Schedules functions on the workers of a cluster: each worker runs the next function when it is free. Workers may
/// fail, reconnect and be added at any time (spec L01).
///
///   dist::ClusterCoordinator coordinator{strategy};
///   auto sum = coordinator.schedule([](dist::WorkerContext&, int a, int b) { return a + b; }, 1, 2);
///   coordinator.join();
///   std::printf("%d\n", sum.fetch());
///
/// A function runs at least once: if its worker is lost, another one runs it from the beginning, but its changes on
/// parameter servers remain. The first error of a function sends stop requests to running functions, and the next
/// `schedule`, `join` or `done` throws it; then the coordinator is usable again (spec L05). It is a RemoteError if a
/// function threw, and Unavailable if a parameter server is lost or a worker does not connect.
///
/// Thread-safe. The destructor cancels waiting functions, asks running ones to stop, and waits for them for slightly
/// more than `CoordinatorOptions::end_timeout`.
template <class Strategy>
class ClusterCoordinator {
  static_assert(
      detail::satisfied<CoordinatedStrategy<Strategy>>,
      "a ClusterCoordinator coordinates a ParameterServer, or the workers of a dist::WorkerList: other strategies "
      "run replicas in step, by strategy.run");

 public:
  /// The transport of calls to workers.
  using Transport = typename Strategy::Transport;

  /// Throws InvalidArgument if the list of workers is empty or an option is invalid. Does not wait for workers.
  explicit ClusterCoordinator(const Strategy& strategy) : ClusterCoordinator(strategy, options_of(strategy)) {}
  /// Coordinates with `options` instead of the strategy's options.
  ClusterCoordinator(const Strategy& strategy, const CoordinatorOptions& options)
      : ClusterCoordinator(state_of(strategy, options)) {
    if constexpr (HasWorkerStrategy<Strategy>) strategy_ = &strategy;
    ReportSignal::answer_to_the_end();
    // The object is constructed, so its destructor cleans up if a thread cannot be started.
    const std::vector<net::Endpoint> workers = strategy.worker_endpoints();
    for (const net::Endpoint& worker : workers)
      add_link(worker,
               std::min(options.start_delay * static_cast<std::int64_t>(links_.size()), options.longest_start_delay));
    state_->queue.set_on_error([this](std::uint64_t round) {
      const std::lock_guard lock{mutex_};
      for (const auto& link : links_) link->stop_function(round);
    });
    if constexpr (ReportsLosses<Strategy>) {
      strategy.set_on_loss(
          [state = state_](const ServerUnavailable& error) { state->queue.fail(std::make_exception_ptr(error)); });
      end_reports_ = [&strategy] { strategy.set_on_loss({}); };
    }
    if constexpr (AttendsWorkers<Strategy>)
      watch_worker_ = [&strategy](std::size_t worker, const net::Endpoint& endpoint) {
        strategy.watch_worker(worker, endpoint);
      };
    if (options.watchdog_timeout.count() > 0)
      watch_.emplace(
          options.watchdog_timeout,
          [this] {
            const ClosureQueue::Counts counts = state_->queue.counts();
            return ProgressWatch::Progress{counts.finished + counts.failed, counts.in_flight + counts.waiting > 0};
          },
          [this](ProgressWatch::Duration since) {
            log_line(concat("no scheduled function has ended for ", since, ": ", describe()));
          });
  }
  ClusterCoordinator(const ClusterCoordinator&) = delete;
  ClusterCoordinator& operator=(const ClusterCoordinator&) = delete;
  ~ClusterCoordinator() {
    watch_.reset();
    if (end_reports_) end_reports_();
    state_->queue.set_on_error({});
    state_->queue.close();
    const std::lock_guard lock{mutex_};
    for (const auto& link : links_) link->stop();
    const auto until = std::chrono::steady_clock::now() + state_->options.end_timeout;
    for (const auto& link : links_) link->join(until);
  }

  /// Schedules a function for the first free worker. Returns a RemoteValue of its result at once, unless the queue is
  /// full (spec L02). The worker calls `function(dist::WorkerContext&, arguments...)`, with its own objects for
  /// PerWorker arguments (spec L03). The function runs in another process of this program, so it must be a lambda
  /// without captures, `dist::function<f>` or a plain struct with operator(), and arguments and results must be values.
  ///
  /// Throws the error of an earlier function (spec L05), and DeadlineExceeded if the queue stays full.
  template <class F, class... Arguments>
  auto schedule(const F& function, const Arguments&... arguments) {
    return put<std::decay_t<const F&>, detail::OnWire<std::decay_t<const Arguments&>>...>({}, function,
                                                                                          on_wire(arguments)...);
  }
  /// Schedules a function on one worker, 0 to `num_workers() - 1` (spec L20). It has priority over functions for all
  /// workers.
  template <class F, class... Arguments>
  auto schedule_on(std::size_t worker, const F& function, const Arguments&... arguments) {
    if (worker >= num_workers())
      throw InvalidArgument("A function is scheduled on a worker that does not exist",
                            concat("number ", worker, " of ", num_workers(), " workers"),
                            "Give a number below the number of workers");
    return put<std::decay_t<const F&>, detail::OnWire<std::decay_t<const Arguments&>>...>(worker, function,
                                                                                          on_wire(arguments)...);
  }

  /// Waits until all functions have finished (spec L04). Throws the first error of a function (spec L05), and
  /// DeadlineExceeded after `timeout`; then it may be called again. If no function finishes for ten seconds
  /// (CoordinatorOptions::patience), stderr reports what it waits for.
  void join() { join_until({}); }
  /// Waits like `join()`, but throws DeadlineExceeded after `timeout`.
  void join(std::chrono::nanoseconds timeout) { join_until(ClosureQueue::Clock::now() + timeout); }
  /// True if all functions have finished (spec L06). Throws the first error of a function, once nothing runs.
  [[nodiscard]] bool done() { return state_->queue.done(); }

  /// Returns the value of a RemoteValue, or of all in a structure (spec L07). See dist::fetch.
  template <class T>
  [[nodiscard]] auto fetch(const T& structure) const {
    return dist::fetch(structure);
  }

  /// Creates a dataset on every worker, by `function(const dist::InputContext&, arguments...)` (spec L09), with one
  /// input pipeline for each. Scheduled functions get a PerWorkerIterator for the returned PerWorker, which continues
  /// from function to function. After a loss, a worker creates its dataset again, from the beginning. If `function`
  /// throws on a worker, only the functions that use the dataset there fail (spec L10).
  template <class F, class... Arguments>
  auto create_per_worker_dataset(const F& function, const Arguments&... arguments) {
    return make<true, std::decay_t<const F&>, std::decay_t<const Arguments&>...>(function, arguments...);
  }
  /// Creates an object on every worker (spec L10). Scheduled functions get it as an lvalue.
  template <class F, class... Arguments>
  auto create_per_worker_resource(const F& function, const Arguments&... arguments) {
    return make<false, std::decay_t<const F&>, std::decay_t<const Arguments&>...>(function, arguments...);
  }

  /// Adds a worker at run time, and returns its number. It can run waiting functions at once. A process becomes this
  /// worker by dist::serve with a cluster that lists it, such as its own TF_CONFIG, and exits with the others when the
  /// work is done.
  std::size_t add_worker(const net::Endpoint& worker) {
    const std::lock_guard lock{mutex_};
    const std::size_t number = links_.size();
    state_->set_workers(number + 1);
    add_link(worker, {});
    if (watch_worker_) watch_worker_(number, worker);
    return number;
  }
  /// The number of workers, including workers added by `add_worker`. Thread-safe.
  [[nodiscard]] std::size_t num_workers() const {
    const std::lock_guard lock{mutex_};
    return links_.size();
  }

  /// Reports an error outside functions, such as the loss of an idle parameter server. The next `schedule`, `join` or
  /// `done` throws it (spec L05).
  void report(std::exception_ptr error) { state_->queue.fail(std::move(error)); }

  /// Metrics since the start (spec L21).
  [[nodiscard]] CoordinatorMetrics metrics() const {
    CoordinatorMetrics metrics{state_->queue.counts()};
    metrics.connected = state_->connected;
    const std::lock_guard lock{mutex_};
    metrics.workers = links_.size();
    for (const auto& link : links_) link->add_to(metrics);
    return metrics;
  }
  /// Describes queue and workers: "3 functions wait, the first for 2.5 s; worker 0 at … runs …"
  [[nodiscard]] std::string describe() const {
    const ClosureQueue::Counts counts = state_->queue.counts();
    std::string words = concat(counts.waiting, counts.waiting == 1 ? " function waits" : " functions wait");
    if (counts.waiting > 0) words += concat(", the first for ", counts.oldest);
    const std::lock_guard lock{mutex_};
    for (const auto& link : links_) words += concat("; ", link->describe());
    return words;
  }

 private:
  using Link = WorkerLink<Transport>;

  void join_until(ClosureQueue::Until until) {
    using Clock = ClosureQueue::Clock;
    SlowWait wait;
    std::uint64_t ended = 0;
    Clock::time_point since = Clock::now();
    bool said = !detail::warnings_are_wanted();
    const auto next_look = [] { return Clock::now() + std::chrono::milliseconds{100}; };
    while (!until || Clock::now() < *until) {
      if (state_->queue.wait_until_idle(until ? std::min(*until, next_look()) : next_look())) return;
      wait.note([&] { return concat("in join: ", describe()); });
      const ClosureQueue::Counts counts = state_->queue.counts();
      if (std::exchange(ended, counts.finished + counts.failed + counts.cancelled) != ended) {
        since = Clock::now();
      } else if (!said && Clock::now() - since >= state_->options.patience) {
        said = true;
        log_line(concat("join waits, and no function has ended for ", state_->options.patience, ": ", describe()));
      }
    }
    state_->queue.join(until);
  }

  explicit ClusterCoordinator(std::shared_ptr<detail::CoordinatorState> state) : state_(std::move(state)) {}

  [[nodiscard]] static CoordinatorOptions options_of([[maybe_unused]] const Strategy& strategy) {
    if constexpr (HasWorkerStrategy<Strategy>)
      return strategy.coordinator_options();
    else
      return {};
  }
  [[nodiscard]] static std::shared_ptr<detail::CoordinatorState> state_of(const Strategy& strategy,
                                                                          const CoordinatorOptions& options) {
    detail::validate(options);
    const std::vector<net::Endpoint> workers = strategy.worker_endpoints();
    if (workers.empty())
      throw InvalidArgument("A coordinator has no workers", "the list of workers is empty", "List at least one worker");
    return std::make_shared<detail::CoordinatorState>(options, strategy.channel_options(),
                                                      strategy.num_replicas_in_sync(), strategy.server_endpoints(),
                                                      workers.size(), strategy.worker_options());
  }
  /// Adds a link only after it has started, because only started links can be joined.
  void add_link(const net::Endpoint& worker, CoordinatorOptions::Duration delay) {
    auto link = std::make_shared<Link>(state_, links_.size(), worker);
    links_.reserve(links_.size() + 1);
    link->start(delay);
    links_.push_back(std::move(link));
  }

  template <class F, class... Arguments>
  auto put(std::optional<std::size_t> worker, const F& function, const Arguments&... arguments) {
    if constexpr (detail::require_scheduled_call<Strategy, F, Arguments...>()) {
      using Result = std::remove_cvref_t<detail::ResultOnWorker<Strategy, F, Arguments...>>;
      Closure closure;
      closure.message = detail::closure_message<Strategy, F, Arguments...>(function, arguments...);
      closure.function = detail::type_name<F>();
      closure.worker = worker;
      RemoteValue<Result> value{closure.result};
      const auto& timeout = state_->options.schedule_timeout;
      state_->queue.put(std::move(closure), timeout.count() == 0
                                                ? ClosureQueue::Until{}
                                                : ClosureQueue::Until{ClosureQueue::Clock::now() + timeout});
      return value;
    }
  }
  template <bool of_data, class F, class... Arguments>
  auto make(const F& function, const Arguments&... arguments) {
    if constexpr (detail::require_resource_call<of_data, F, Arguments...>()) {
      using Made = std::invoke_result_t<F&, const InputContext&, Arguments&...>;
      return PerWorker<typename detail::ResourceOf<Made>::Type>{
          add_resource(detail::resource_message<F, Arguments...>(function, arguments...))};
    }
  }
  std::uint64_t add_resource(std::vector<std::byte> message) {
    const std::uint64_t number = state_->add_resource(std::move(message));
    {
      const std::lock_guard lock{mutex_};
      for (const auto& link : links_) link->wake();
    }
    state_->queue.wake();
    return number;
  }

  /// Returns the form in which an argument is sent: for an object with copies on the workers, a reference to the copy,
  /// which workers create on first use.
  template <class T>
  [[nodiscard]] static const T& on_wire(const T& argument) {
    return argument;
  }
  template <HasWorkerCopies X>
  [[nodiscard]] PerWorker<X> on_wire(const X& object) {
    constexpr bool has_strategy = HasWorkerStrategy<Strategy>;
    static_assert(has_strategy,
                  "a network, an optimizer, a metric or a model can only be an argument of a function that the "
                  "coordinator of a dist::ParameterServer schedules");
    if constexpr (has_strategy) {
      const VariablesMade& made = object.variables_made();
      if (made.strategy() != strategy_)
        throw WrongStrategy(
            concat("An object of another strategy was given to a scheduled function: ", detail::type_name<X>()),
            concat("the coordinator uses ", strategy_->describe()), "Make it with the strategy of the coordinator");
      const std::pair key{made.first(), static_cast<const void*>(&detail::type_mark<X>)};
      const std::lock_guard lock{copies_mutex_};
      const auto found = copies_.find(key);
      if (found != copies_.end()) return {found->second};
      return {copies_[key] = add_resource(detail::worker_copy_message(
                  *strategy_, object, object.arguments(),
                  [this](const auto& argument) -> decltype(auto) { return this->on_wire(argument); }))};
    }
  }

  std::shared_ptr<detail::CoordinatorState> state_;
  const Strategy* strategy_ = nullptr;  ///< set if it is a HasWorkerStrategy
  std::recursive_mutex copies_mutex_;
  /// Resource numbers of the copies of objects, by the number of the first variable and the type of the object.
  std::map<std::pair<std::uint64_t, const void*>, std::uint64_t> copies_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Link>> links_;
  std::optional<ProgressWatch> watch_;
  detail::UniqueFunction<void> end_reports_;                                      ///< if it ReportsLosses
  detail::UniqueFunction<void, std::size_t, const net::Endpoint&> watch_worker_;  ///< if it AttendsWorkers
};

}  // namespace dist
