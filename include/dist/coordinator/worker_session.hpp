#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <dist/context/input_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/client.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist::detail {

/// The address identifies the type.
template <class T>
inline constexpr char type_mark = 0;

/// A resource of a worker, or the reason why it could not be created.
struct WorkerResource {
  std::shared_ptr<void> value;
  const void* type = nullptr;  ///< address of its `type_mark`
  rpc::Outcome failure = {};
  std::shared_ptr<void> variables = {};  ///< of a worker's copy of an object (coordinator/worker_copy.hpp)
};

/// Error for a function whose resource could not be created on this worker. `outcome()` is the failure of its creation.
class ResourceError : public std::exception {
 public:
  explicit ResourceError(rpc::Outcome outcome) : outcome_(std::move(outcome)) {}

  [[nodiscard]] const rpc::Outcome& outcome() const noexcept { return outcome_; }
  [[nodiscard]] const char* what() const noexcept override { return outcome_.why.c_str(); }

 private:
  rpc::Outcome outcome_;
};

/// The position of a worker in the cluster, from the coordinator's greeting.
struct WorkerIdentity {
  std::uint64_t worker = 0;
  std::uint64_t workers = 1;
  std::uint64_t replicas_in_sync = 1;
  std::vector<std::string> servers = {};  ///< addresses of the parameter servers
  server::WorkerOptions options = {};
};

/// A worker's state for a coordinator, from one greeting to the next.
class WorkerSession {
 public:
  /// `to_servers` are the options for the functions' calls to parameter servers.
  explicit WorkerSession(WorkerIdentity place, rpc::ChannelOptions to_servers = {})
      : place_(std::move(place)), to_servers_(std::move(to_servers)) {}

  [[nodiscard]] const WorkerIdentity& place() const noexcept { return place_; }
  [[nodiscard]] InputContext input_context() const {
    return {static_cast<std::size_t>(place_.workers), static_cast<std::size_t>(place_.worker),
            static_cast<std::size_t>(place_.replicas_in_sync)};
  }
  /// The index of the parameter server with that address, or their number if none has it.
  [[nodiscard]] std::size_t server_at(const std::string& address) const;

  /// The clients of the parameter servers, created on first use.
  template <rpc::Transport T>
  [[nodiscard]] std::shared_ptr<server::Clients<T>> clients() {
    const std::lock_guard lock{mutex_};
    std::shared_ptr<void>& kept = clients_[&type_mark<T>];
    if (!kept) {
      kept = std::make_shared<server::Clients<T>>(
          endpoints(), server::ClientOptions{.channel = to_servers_, .shared_memory = place_.options.shared_memory});
    }
    return std::static_pointer_cast<server::Clients<T>>(kept);
  }
  /// The worker's instance of the coordinator's strategy, created on first use.
  template <class S>
  [[nodiscard]] S& strategy() {
    const auto clients_of_servers = clients<typename S::Transport>();
    const std::lock_guard lock{mutex_};
    std::shared_ptr<void>& kept = strategies_[&type_mark<S>];
    if (!kept) kept = std::make_shared<S>(clients_of_servers, place_.options);
    return *static_cast<S*>(kept.get());
  }

  /// Stores a resource until the end of the session, unless the number is in use.
  void keep(std::uint64_t id, WorkerResource resource);
  /// Throws ArchiveError if no resource has that number and type, and ResourceError if it could not be created.
  [[nodiscard]] void* resource(std::uint64_t id, const void* type) const;
  /// See WorkerResource::variables.
  [[nodiscard]] std::shared_ptr<void> variables_of(std::uint64_t id) const;

  /// Asks all functions to stop, because the coordinator has left or is lost.
  void end() noexcept { ended_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_relaxed); }
  /// Asks the function of a run, and of earlier runs, to stop.
  void stop(std::uint64_t run) noexcept {
    for (std::uint64_t before = stopped_.load(); before < run && !stopped_.compare_exchange_weak(before, run);) {
    }
  }
  [[nodiscard]] bool is_stopped(std::uint64_t run) const noexcept {
    return run <= stopped_.load(std::memory_order_relaxed);
  }
  /// Returns false if a function of the session is already running.
  [[nodiscard]] bool begin_function() noexcept { return !busy_.exchange(true, std::memory_order_acquire); }
  void end_function() noexcept { busy_.store(false, std::memory_order_release); }

 private:
  [[nodiscard]] std::vector<net::Endpoint> endpoints() const;

  const WorkerIdentity place_;
  const rpc::ChannelOptions to_servers_;
  mutable std::mutex mutex_;
  // By the `type_mark` of the transport and of the strategy. Resources are destroyed first.
  std::map<const void*, std::shared_ptr<void>> clients_;
  std::map<const void*, std::shared_ptr<void>> strategies_;
  std::map<std::uint64_t, WorkerResource> resources_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> busy_{false};
  std::atomic<std::uint64_t> stopped_{0};  ///< last run that must stop
};

/// Creates a resource from an archive with the arguments of its function.
using ResourceMaker = WorkerResource(WorkerSession&, ArchiveReader&);

}  // namespace dist::detail

namespace dist {

namespace detail {

/// A function call on a worker.
struct FunctionRun {
  WorkerSession* session;
  FunctionRef<bool()> stop_requested;  ///< true if the caller is lost, or asks the function to stop
  std::atomic<bool> knows = false;     ///< the function knows that it must stop
  bool in_function = false;            ///< the function has started, so that exceptions are its own
};

}  // namespace detail

/// A handle of one object on each worker, created there by a function: a per-worker dataset or another resource.
/// Scheduled functions get the object of their worker (spec L03). Created by `create_per_worker_dataset` and
/// `create_per_worker_resource` of a coordinator.
template <class T>
struct PerWorker {
  using Value = T;

  std::uint64_t id = 0;  ///< its number at the coordinator
};

/// The first argument of every scheduled function: its worker. Valid during the call. With a ParameterServer, it is the
/// derived class WorkerReplicaContext.
class WorkerContext {
 public:
  explicit WorkerContext(detail::FunctionRun& run) : run_(&run) {}

  /// The number of the worker, 0 to `num_workers() - 1` (spec L11).
  [[nodiscard]] std::size_t index() const noexcept { return static_cast<std::size_t>(session().place().worker); }
  /// The number of workers at the time of the coordinator's greeting.
  [[nodiscard]] std::size_t num_workers() const noexcept { return static_cast<std::size_t>(session().place().workers); }
  /// The addresses of the parameter servers, in order.
  [[nodiscard]] const std::vector<std::string>& servers() const noexcept { return session().place().servers; }
  /// The position of the worker's input pipeline, for functions that create its dataset.
  [[nodiscard]] InputContext input_context() const { return session().input_context(); }

  /// The clients of the parameter servers, for variables on them (ServerContext). They live as long as the session.
  template <rpc::Transport T>
  [[nodiscard]] server::Clients<T>& clients() const {
    return *session().template clients<T>();
  }

  /// True if the result is not needed any more, because another function has failed (spec L05), or the coordinator has
  /// ended or considers this worker lost. Long functions should poll it and return; their result is then Cancelled.
  [[nodiscard]] bool stop_requested() const {
    const bool stops = session().ended() || run_->stop_requested();
    if (stops) run_->knows.store(true, std::memory_order_relaxed);
    return stops;
  }

  /// The object of this worker for a PerWorker. Needed only for a PerWorker inside a structure; an argument is already
  /// the object.
  template <class T>
  [[nodiscard]] T& get(const PerWorker<T>& name) const {
    return *static_cast<T*>(session().resource(name.id, &detail::type_mark<T>));
  }

  // For callers of scheduled functions.
  /// The state of the call, for code of the library that calls scheduled functions.
  [[nodiscard]] detail::FunctionRun& function_run() const noexcept { return *run_; }
  /// The state that the worker keeps for its coordinator, such as resources.
  [[nodiscard]] detail::WorkerSession& session() const noexcept { return *run_->session; }

 private:
  detail::FunctionRun* run_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/coordinator/worker_session.ipp>
#endif
