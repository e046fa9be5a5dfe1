/// The main function of a process that is a parameter server or a worker.
#pragma once

#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/core/threads.hpp>
#include <dist/device/signal_flag.hpp>  // SIGTERM, too
#include <dist/device/slow_wait.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/secret.hpp>
#include <dist/net/tls_files.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/error.hpp>
#include <dist/server/lifeline.hpp>
#include <dist/server/shard_server.hpp>

namespace dist::server {

/// A process that serves a coordinator.
struct Served {
  Task task;
  net::Endpoint endpoint;

  bool operator==(const Served&) const = default;
};

/// Returns the workers and parameter servers of a cluster that validate_parameter_servers accepts. Messages name
/// `source`, such as "TF_CONFIG".
[[nodiscard]] std::vector<Served> served_by(const ClusterSpec& cluster, std::string_view source);

struct ServeOptions {
  net::Milliseconds wait_for_coordinator{600'000};  ///< before the process gives up

  /// The time that a process without its coordinator waits for it, or for another that takes over
  /// (SessionOptions::takes_over); 0: it exits at once.
  net::Milliseconds keep_alive{5'000};
  /// The signal that asks the process to end the job, unless the program handles or ignores it; 0: none. The process
  /// serves until the coordinator has ended the job.
  int end_signal = SIGTERM;
  /// The time limit for the coordinator to end the job after `end_signal`.
  net::Milliseconds leave_timeout{25'000};
  /// The time limit for running handlers, such as scheduled functions, to finish at the end. Then the process exits
  /// without them, with a failure status.
  net::Milliseconds end_timeout{30'000};
  net::Milliseconds patience = net::default_patience;  ///< before stderr reports that the process waits
  rpc::ServerOptions server = {.threads = 4, .secret = net::job_secret(), .tls = net::job_tls()};
};

namespace detail {

[[nodiscard]] bool has_other_hosts(const ClusterSpec& cluster, const net::Endpoint& own, std::string_view source);

/// Returns "chief 0 at 10.0.0.1:2222", for messages.
[[nodiscard]] std::string coordinator_of(const ClusterSpec& cluster);

/// Records the wait for reports by `kill -USR1`.
void note(std::optional<SlowWait>& wait, const std::string& coordinator);

/// Returns when the coordinator has finished, otherwise throws. `heeds_signal`: see ServeOptions::end_signal.
template <class Lifeline>
[[gnu::cold]] void serve_coordinators(Lifeline& lifeline, const std::string& self, const std::string& coordinator,
                                      const ServeOptions& options, bool heeds_signal, std::optional<SlowWait>& wait) {
  using Clock = typename Lifeline::Clock;
  using State = typename Lifeline::State;
  const bool speaks = dist::detail::warnings_are_wanted();
  const auto begin = Clock::now();
  bool said_waiting = false;
  std::optional<typename Clock::time_point> said_lost, told;
  for (;;) {
    const typename Lifeline::ClientState now = lifeline.wait_for(net::Milliseconds{50});
    if (!told && heeds_signal && dist::detail::SignalFlag::came()) {
      told = Clock::now();
      if (speaks && now.state == State::attended)
        log_line(concat(self, " received a stop request, and continues to serve until ", coordinator,
                        " ends the job, for ", options.leave_timeout, " at most"));
    }
    if (now.state == State::attended && !told)
      wait.reset();
    else
      note(wait, coordinator);
    switch (now.state) {
      case State::left:
        if (now.status == 0) return;
        throw Preempted(self, concat(coordinator, " ended the job with status ", now.status), now.status);
      case State::attended:
        if (told && Clock::now() - *told >= options.leave_timeout)
          throw DeadlineExceeded(
              concat(self, " received a stop request, but the job has not ended"),
              concat(coordinator, " did not end it within ", options.leave_timeout),
              "Send the stop request to the coordinator, too, and let it save within that time (leave_timeout)");
        break;
      case State::waiting: {
        if (told) throw Preempted(self, "no coordinator has connected yet", ExitCode::preempted);
        const auto waited = Clock::now() - begin;
        if (waited >= options.wait_for_coordinator)
          throw DeadlineExceeded(
              concat(self, " has no coordinator"),
              concat(coordinator, " did not connect within ", options.wait_for_coordinator),
              "Start the coordinator with the same list of tasks, or wait longer for it (wait_for_coordinator)");
        if (!said_waiting && speaks && waited >= options.patience) {
          said_waiting = true;
          log_line(concat(self, " is still waiting for ", coordinator, " after ", options.patience));
        }
        break;
      }
      case State::lost: {
        if (told || Clock::now() - now.since >= options.keep_alive)
          throw CoordinatorUnavailable(
              self, coordinator,
              told || options.keep_alive.count() == 0
                  ? std::string{"disconnected without notice"}
                  : concat("disconnected without notice, and did not return within ", options.keep_alive));
        if (said_lost != now.since && speaks) {
          said_lost = now.since;
          log_line(concat(self, " has lost its coordinator, and waits for its return for ", options.keep_alive));
        }
        break;
      }
    }
  }
}

/// Fails to compile with an explanation if `T` is not a transport or `Resolver` not a resolver.
template <class T, class Resolver>
[[nodiscard]] constexpr bool require_served() {
  constexpr bool travels = dist::detail::satisfied<rpc::Transport<T>>;
  static_assert(travels, "serve takes a transport as its template argument, such as dist::Local or dist::Grpc");
  constexpr bool resolves = dist::detail::satisfied<ClusterResolver<Resolver>>;
  static_assert(resolves, "serve takes a resolver that lists the tasks of the job, such as dist::TfConfigResolver");
  return travels && resolves;
}

/// Exits if the process does not end in time, because threads cannot be forced out of a function.
class EndWatch {
 public:
  EndWatch(std::string self, net::Milliseconds timeout, int status);
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;
  ~EndWatch();

 private:
  std::mutex mutex_;
  dist::detail::ConditionVariable changed_;
  bool ended_ = false;
  std::thread thread_;
};

/// Serves as `task` of a valid cluster.
template <class T>
[[gnu::cold]] void serve_task(const ClusterSpec& cluster, const Task& task, const std::string& source,
                              const ServeOptions& options, std::vector<rpc::Method<typename T::Exchange>> of_workers) {
  if constexpr (rpc::PreparesToServe<T>) T::prepare_to_serve();
  const bool holds_variables = task.type == TaskType::parameter_server;
  std::optional<ShardServer> store;
  if (holds_variables) store.emplace(rpc::WithinProcess<T> ? Reach::process : Reach::machine);
  Lifeline<typename T::Exchange> lifeline{task, store ? store->incarnation() : net::random_number()};
  std::vector<rpc::Method<typename T::Exchange>> methods =
      store ? store_methods<typename T::Exchange>(*store) : std::move(of_workers);
  for (rpc::Method<typename T::Exchange>& method : lifeline.methods()) methods.push_back(std::move(method));

  const net::Endpoint own = task_endpoint(cluster, task, source);
  rpc::ServerOptions its = options.server;
  its.peers_elsewhere = its.peers_elsewhere || has_other_hosts(cluster, own, source);
  const std::string self = concat(to_string(task), " at ", to_string(own));
  if constexpr (!rpc::WithinProcess<T>) {
    ReportSignal::name_process(self);
    ReportSignal::answer_to_the_end();
  }
  const std::string coordinator = coordinator_of(cluster);
  std::optional<SlowWait> wait;
  note(wait, coordinator);  // before a coordinator can connect
  typename T::Server server{own, its, std::move(methods)};
  std::optional<dist::detail::SignalFlag> signal;
  if constexpr (!rpc::WithinProcess<T>) dist::detail::SignalFlag::make_if_free(signal, options.end_signal);
  std::exception_ptr failure;
  int status = ExitCode::failure;
  try {
    serve_coordinators(lifeline, self, coordinator, options, signal.has_value(), wait);
  } catch (const Error& error) {
    failure = std::current_exception();
    status = error.exit_code();
  }
  std::optional<EndWatch> watch;
  if constexpr (!rpc::WithinProcess<T>) watch.emplace(self, options.end_timeout, status);
  server.stop();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail

/// Serves as a parameter server or worker until the coordinator has finished, and returns true. In the coordinator, the
/// chief, returns false at once (spec J12, R01).
///
///   if (dist::server::serve<dist::Grpc>(dist::TfConfigResolver{})) return 0;
///
/// Listens at the address of this process in the resolver's list. A parameter server has a ShardServer; a worker has
/// the methods `of_workers`, which must outlive the call.
///
/// Throws CoordinatorUnavailable if the coordinator is lost and does not return within `keep_alive`; Preempted if the
/// coordinator has saved and ended the job on request (PreemptionHandler); DeadlineExceeded if no coordinator connects,
/// or if this process must end and the coordinator does not end the job within `leave_timeout`; InvalidArgument if the
/// cluster is invalid; RendezvousError if the process cannot listen. dist::exit_code returns their exit statuses.
template <rpc::Transport T, ClusterResolver Resolver>
[[nodiscard]] bool serve(const Resolver& resolver, const ServeOptions& options,
                         std::vector<rpc::Method<typename T::Exchange>> of_workers) {
  const ClusterSpec cluster = resolver.cluster_spec();
  const std::optional<Task> task = resolver.task();
  const std::string source = resolver.describe();
  validate_parameter_servers(cluster, task, source);
  if (task->type == TaskType::chief) return false;
  ServeOptions its = options;
  its.server.secret = job_secret(std::move(its.server.secret), resolver);
  detail::serve_task<T>(cluster, *task, source, its, std::move(of_workers));
  return true;
}
/// Serves without worker methods.
template <class T, class Resolver>
[[nodiscard]] bool serve(const Resolver& resolver, const ServeOptions& options = {}) {
  if constexpr (detail::require_served<T, Resolver>())
    return serve<T>(resolver, options, {});
  else
    return false;
}

}  // namespace dist::server

#ifndef DIST_COMPILED
#include <dist/server/serve.ipp>
#endif
