#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/coordinator/worker_session.hpp>
#include <dist/core/functions.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/clients.hpp>

namespace dist {

namespace detail {

/// A function that a worker runs.
struct FunctionRun {
  WorkerSession* session;
  FunctionRef<bool()> stop_requested;  ///< whether the caller is gone, or asks the function to stop
  std::atomic<bool> knows = false;     ///< that it is to stop
  bool in_function = false;            ///< it has been called: an earlier exception is not the function's
};

}  // namespace detail

/// Names one object on each worker, which a function of the program makes there: a per-worker dataset or another resource. As
/// an argument of a scheduled function it becomes the object of the worker that runs it (spec L03). Made by
/// `create_per_worker_dataset` and `create_per_worker_resource` of a coordinator.
template <class T>
struct PerWorker {
  using Value = T;

  std::uint64_t id = 0;  ///< its number at the coordinator
};

/// The first argument of every scheduled function: the worker that runs it. It is valid during the call. Where the coordinator has a
/// ParameterServer, the argument is a WorkerReplicaContext, which is one.
class WorkerContext {
 public:
  explicit WorkerContext(detail::FunctionRun& run) : run_(&run) {}

  /// The number of the worker (spec L11): 0 to `num_workers() - 1`.
  [[nodiscard]] std::size_t index() const noexcept { return static_cast<std::size_t>(session().place().worker); }
  /// How many workers there were when the coordinator greeted this one.
  [[nodiscard]] std::size_t num_workers() const noexcept { return static_cast<std::size_t>(session().place().workers); }
  /// The addresses of the parameter servers.
  [[nodiscard]] const std::vector<std::string>& servers() const noexcept { return session().place().servers; }
  [[nodiscard]] InputContext input_context() const { return session().input_context(); }

  /// The clients of these, for variables on them (ServerContext). They stay as long as the coordinator goes on with this worker.
  template <rpc::Transport T>
  [[nodiscard]] server::Clients<T>& clients() const {
    return *session().template clients<T>();
  }

  /// True if the result is not needed any more: another function has failed (spec L05), or the coordinator has ended or takes
  /// this worker for lost. A function that runs for long asks now and then, and returns: its result is Cancelled.
  [[nodiscard]] bool stop_requested() const {
    const bool stops = session().ended() || run_->stop_requested();
    if (stops) run_->knows.store(true, std::memory_order_relaxed);
    return stops;
  }

  /// The object of this worker that a PerWorker names. A function calls it for a PerWorker inside a structure; one that is
  /// an argument is the object already.
  template <class T>
  [[nodiscard]] T& get(const PerWorker<T>& name) const {
    return *static_cast<T*>(session().resource(name.id, &detail::type_mark<T>));
  }

  // For what calls scheduled functions.
  [[nodiscard]] detail::FunctionRun& function_run() const noexcept { return *run_; }
  [[nodiscard]] detail::WorkerSession& session() const noexcept { return *run_->session; }

 private:
  detail::FunctionRun* run_;
};

}  // namespace dist
