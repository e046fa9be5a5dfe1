/// The whole life of a process that is a parameter server or a worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
#include <dist/comm/rpc.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/say.hpp>
#include <dist/core/threads.hpp>
#include <dist/core/warning.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/random_number.hpp>
#include <dist/net/secret.hpp>
#include <dist/net/tls_files.hpp>
#include <dist/server/lifeline.hpp>
#include <dist/server/served.hpp>
#include <dist/server/store.hpp>

namespace dist::server {

struct ServeOptions {
  net::Milliseconds wait_for_coordinator{600'000};  ///< before the process gives up
  /// For how long a process that has lost its coordinator keeps what it has for another one; 0: it ends at once, as it does
  /// where a transport loses processes for good.
  net::Milliseconds linger{60'000};
  /// For handlers that run, such as functions that a coordinator has scheduled, to end with the process; then it ends
  /// without them, with status 1.
  net::Milliseconds end_timeout{10'000};
  net::Milliseconds patience = net::default_patience;  ///< before stderr says for whom the process waits
  rpc::ServerOptions server = {.threads = 4, .secret = net::job_secret(), .tls = net::job_tls()};
};

namespace detail {

/// Whether a task of the cluster is on another machine than this one.
[[nodiscard]] bool has_other_hosts(const ClusterSpec& cluster, const net::Endpoint& own, std::string_view source);

/// "chief 0 at 10.0.0.1:2222", for messages.
[[nodiscard]] std::string coordinator_of(const ClusterSpec& cluster);

/// Returns when the process is to end: its coordinator has left, or is lost and no other one has come.
template <class Lifeline>
void serve_coordinators(Lifeline& lifeline, const std::string& self, const std::string& coordinator,
                        const ServeOptions& options) {
  using State = typename Lifeline::State;
  const bool speaks = dist::detail::warnings_are_wanted();
  const auto begin = Lifeline::Clock::now();
  bool said_waiting = false;
  std::optional<typename Lifeline::Clock::time_point> said_lost;
  for (;;) {
    const typename Lifeline::Standing now = lifeline.wait_for(net::Milliseconds{50});
    if (now.state == State::left) return;
    if (now.state == State::attended) continue;
    if (now.state == State::waiting) {
      const auto waited = Lifeline::Clock::now() - begin;
      if (waited >= options.wait_for_coordinator)
        throw DeadlineExceeded(text(self, " has no coordinator"),
                               text(coordinator, " has not come within ", net::seconds(options.wait_for_coordinator)),
                               "Start the coordinator with the same list of tasks, or wait for it for longer "
                               "(wait_for_coordinator)");
      if (!said_waiting && speaks && waited >= options.patience) {
        said_waiting = true;
        say(text(self, " waits for ", coordinator, " since ", net::seconds(options.patience)));
      }
      continue;
    }
    const bool over = Lifeline::Clock::now() - now.since >= options.linger;
    if (said_lost != now.since && speaks) {
      said_lost = now.since;
      say(text(
          self, " has lost its coordinator",
          over ? ", and ends" : text(" and keeps what it has for another one, for ", net::seconds(options.linger))));
    }
    if (over) return;
  }
}

/// Refuses, in a sentence, what a process cannot serve by, and says whether it can.
template <class T, class Resolver>
[[nodiscard]] constexpr bool require_served() {
  constexpr bool travels = dist::detail::holds<rpc::Transport<T>>;
  static_assert(travels, "serve names what calls travel by, such as dist::Local or dist::Grpc");
  constexpr bool resolves = dist::detail::holds<ClusterResolver<Resolver>>;
  static_assert(resolves,
                "serve is given a resolver, such as dist::TfConfigResolver, which knows the tasks of the job");
  return travels && resolves;
}

/// Ends the process unless it is gone in time: no thread can be made to leave a function that does not return.
class EndWatch {
 public:
  EndWatch(std::string self, net::Milliseconds timeout);
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
/// It listens at the address that the resolver lists for it. A parameter server has a Store; a worker has the methods
/// `of_workers`, which outlive the call. A coordinator that is lost is waited for, or another one in its place, as long as
/// `linger` says; then the process ends, too. Throws InvalidArgument for a cluster that cannot work, RendezvousError where
/// the process cannot listen, and DeadlineExceeded where no coordinator comes.
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
  std::optional<Store> store;
  constexpr bool others_reach_it = rpc::SharesMemoryToRead<T> && !rpc::WithinProcess<T>;
  if (holds_variables) store.emplace(others_reach_it ? Reach::machine : Reach::process);
  Lifeline<typename T::Exchange> lifeline{*task, store ? store->incarnation() : net::random_number()};
  std::vector<rpc::Method<typename T::Exchange>> methods =
      store ? store_methods<typename T::Exchange>(*store) : std::move(of_workers);
  for (rpc::Method<typename T::Exchange>& method : lifeline.methods()) methods.push_back(std::move(method));

  const net::Endpoint own = task_endpoint(cluster, *task, source);
  rpc::ServerOptions its = options.server;
  its.peers_elsewhere = its.peers_elsewhere || detail::has_other_hosts(cluster, own, source);
  const std::string self = text(to_string(*task), " at ", to_string(own));
  typename T::Server server{own, its, std::move(methods)};
  ServeOptions waits = options;
  if constexpr (rpc::LosesForGood<T>) waits.linger = net::Milliseconds{0};
  detail::serve_coordinators(lifeline, self, detail::coordinator_of(cluster), waits);
  std::optional<detail::EndWatch> watch;
  if constexpr (!rpc::WithinProcess<T>) watch.emplace(self, options.end_timeout);
  server.stop();
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
