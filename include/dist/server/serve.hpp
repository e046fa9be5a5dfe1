/// The whole life of a process that is a parameter server or a worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/task_endpoint.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
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

/// A process that serves a coordinator, and where it listens.
struct Served {
  Task task;
  net::Endpoint endpoint;

  bool operator==(const Served&) const = default;
};

/// The workers and the parameter servers of a cluster that validate_parameter_servers takes. `source` says where the cluster
/// comes from: "TF_CONFIG".
[[nodiscard]] std::vector<Served> served_by(const ClusterSpec& cluster, std::string_view source);

struct ServeOptions {
  net::Milliseconds wait_for_coordinator{600'000};  ///< before the process gives up
  /// For how long a process that has lost its coordinator waits for it to come back, or for one that takes over
  /// (SessionOptions::takes_over); 0: it ends at once.
  net::Milliseconds keep_alive{5'000};
  /// The signal that asks the process to end the job, unless the program handles or ignores it itself; 0: no signal.
  /// The process serves on until its coordinator has ended the job.
  int end_signal = SIGTERM;
  /// For the coordinator to do so.
  net::Milliseconds leave_timeout{25'000};
  /// For handlers that run, such as functions that a coordinator has scheduled, to end with the process; then it ends
  /// without them, with the status of a failure.
  net::Milliseconds end_timeout{30'000};
  net::Milliseconds patience = net::default_patience;  ///< before stderr says for whom the process waits
  rpc::ServerOptions server = {.threads = 4, .secret = net::job_secret(), .tls = net::job_tls()};
};

namespace detail {

/// Whether a task of the cluster is on another machine than this one.
[[nodiscard]] bool has_other_hosts(const ClusterSpec& cluster, const net::Endpoint& own, std::string_view source);

/// "chief 0 at 10.0.0.1:2222", for messages.
[[nodiscard]] std::string coordinator_of(const ClusterSpec& cluster);

/// Notes that the process waits for its coordinator, at once, for `kill -USR1`.
void note(std::optional<SlowWait>& wait, const std::string& coordinator);

/// Returns when the coordinator has done its work, and throws what else ends the process. `heeds_signal`: see
/// ServeOptions::end_signal. `wait`: for the coordinator.
template <class Lifeline>
void serve_coordinators(Lifeline& lifeline, const std::string& self, const std::string& coordinator,
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
        log_line(concat(self, " was told to end, and serves until ", coordinator, " has ended the job, for ",
                        options.leave_timeout, " at most"));
    }
    if (now.state == State::attended && !told)
      wait.reset();
    else
      note(wait, coordinator);
    switch (now.state) {
      case State::left:
        if (now.status == 0) return;
        throw Preempted(self, concat(coordinator, " has ended it with status ", now.status), now.status);
      case State::attended:
        if (told && Clock::now() - *told >= options.leave_timeout)
          throw DeadlineExceeded(concat(self, " was told to end, and the job has not ended"),
                                 concat(coordinator, " has not ended it within ", options.leave_timeout),
                                 "Tell the coordinator to end, too, and let it save within that time (leave_timeout)");
        break;
      case State::waiting: {
        if (told) throw Preempted(self, "no coordinator has come yet", ExitCode::preempted);
        const auto waited = Clock::now() - begin;
        if (waited >= options.wait_for_coordinator)
          throw DeadlineExceeded(concat(self, " has no coordinator"),
                                 concat(coordinator, " has not come within ", options.wait_for_coordinator),
                                 "Start the coordinator with the same list of tasks, or wait for it for longer "
                                 "(wait_for_coordinator)");
        if (!said_waiting && speaks && waited >= options.patience) {
          said_waiting = true;
          log_line(concat(self, " waits for ", coordinator, " since ", options.patience));
        }
        break;
      }
      case State::lost: {
        if (told || Clock::now() - now.since >= options.keep_alive)
          throw CoordinatorUnavailable(
              self, coordinator,
              told || options.keep_alive.count() == 0
                  ? std::string{"has gone without a word"}
                  : concat("has gone without a word, and has not come back within ", options.keep_alive));
        if (said_lost != now.since && speaks) {
          said_lost = now.since;
          log_line(concat(self, " has lost its coordinator, and waits for it for ", options.keep_alive));
        }
        break;
      }
    }
  }
}

/// Refuses, in a sentence, what a process cannot serve by, and says whether it can.
template <class T, class Resolver>
[[nodiscard]] constexpr bool require_served() {
  constexpr bool travels = dist::detail::satisfied<rpc::Transport<T>>;
  static_assert(travels, "serve names what calls travel by, such as dist::Local or dist::Grpc");
  constexpr bool resolves = dist::detail::satisfied<ClusterResolver<Resolver>>;
  static_assert(resolves,
                "serve is given a resolver, such as dist::TfConfigResolver, which knows the tasks of the job");
  return travels && resolves;
}

/// Ends the process unless it is gone in time: no thread can be made to leave a function that does not return.
class EndWatch {
 public:
  /// A process that is still there after `timeout` exits with `status`.
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

}  // namespace detail

/// A process that is a parameter server or a worker serves until its coordinator has done its work, and returns true. In the
/// coordinator, which is the chief, it returns false at once (spec J12, R01).
///
///   if (dist::server::serve<dist::Grpc>(dist::TfConfigResolver{})) return 0;
///
/// It listens at the address that the resolver lists for it. A parameter server has a ShardServer; a worker has the methods
/// `of_workers`, which outlive the call.
///
/// Every other end of the job is an error: CoordinatorUnavailable where the coordinator is lost and has not come back within
/// `keep_alive`; Preempted where the job was told to end and the coordinator has saved it (PreemptionHandler); DeadlineExceeded
/// where no coordinator comes, and where this process was told to end and the coordinator has not ended the job within
/// `leave_timeout`. dist::exit_code says the status that each of them means. Throws InvalidArgument for a cluster that cannot
/// work, and RendezvousError where the process cannot listen.
template <rpc::Transport T, ClusterResolver Resolver>
[[nodiscard]] bool serve(const Resolver& resolver, const ServeOptions& options,
                         std::vector<rpc::Method<typename T::Exchange>> of_workers) {
  const ClusterSpec cluster = resolver.cluster_spec();
  const std::optional<Task> task = resolver.task();
  const std::string source = resolver.describe();
  validate_parameter_servers(cluster, task, source);
  if (task->type == TaskType::chief) return false;
  if constexpr (rpc::PreparesToServe<T>) T::prepare_to_serve();

  const bool holds_variables = task->type == TaskType::parameter_server;
  std::optional<ShardServer> store;
  if (holds_variables) store.emplace(rpc::WithinProcess<T> ? Reach::process : Reach::machine);
  Lifeline<typename T::Exchange> lifeline{*task, store ? store->incarnation() : net::random_number()};
  std::vector<rpc::Method<typename T::Exchange>> methods =
      store ? store_methods<typename T::Exchange>(*store) : std::move(of_workers);
  for (rpc::Method<typename T::Exchange>& method : lifeline.methods()) methods.push_back(std::move(method));

  const net::Endpoint own = task_endpoint(cluster, *task, source);
  rpc::ServerOptions its = options.server;
  its.secret = job_secret(std::move(its.secret), resolver);
  its.peers_elsewhere = its.peers_elsewhere || detail::has_other_hosts(cluster, own, source);
  const std::string self = concat(to_string(*task), " at ", to_string(own));
  if constexpr (!rpc::WithinProcess<T>) {
    ReportSignal::name_process(self);
    ReportSignal::answer_to_the_end();
  }
  const std::string coordinator = detail::coordinator_of(cluster);
  std::optional<SlowWait> wait;
  detail::note(wait, coordinator);  // before a coordinator can come
  typename T::Server server{own, its, std::move(methods)};
  std::optional<dist::detail::SignalFlag> signal;
  if constexpr (!rpc::WithinProcess<T>) dist::detail::SignalFlag::make_if_free(signal, options.end_signal);
  std::exception_ptr failure;
  int status = ExitCode::failure;
  try {
    detail::serve_coordinators(lifeline, self, coordinator, options, signal.has_value(), wait);
  } catch (const Error& error) {
    failure = std::current_exception();
    status = error.exit_code();
  }
  std::optional<detail::EndWatch> watch;
  if constexpr (!rpc::WithinProcess<T>) watch.emplace(self, options.end_timeout, status);
  server.stop();
  if (failure) std::rethrow_exception(failure);
  return true;
}
/// The same for workers without methods.
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
