#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/coordinator/worker_session.hpp>
#include <dist/core/function_ref.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/clients.hpp>

namespace dist {

namespace detail {
template <class F>
struct FunctionOnWorker;
}  // namespace detail
template <rpc::Transport Transport>
class WorkerService;

/// Names one object on each worker, which a function of the program makes there: a per-worker dataset or another resource. As
/// an argument of a scheduled function it becomes the object of the worker that runs it (spec L03). Made by
/// `create_per_worker_dataset` and `create_per_worker_resource` of a coordinator.
template <class T>
struct PerWorker {
  using Value = T;

  std::uint64_t id = 0;  ///< its number at the coordinator
};

/// The first argument of every scheduled function: the worker that runs it. It is valid during the call.
class WorkerContext {
 public:
  /// `stop_requested` says whether the caller is gone, or asks the function to stop.
  WorkerContext(detail::WorkerSession& session, detail::FunctionRef<bool()> stop_requested)
      : session_(&session), stop_requested_(stop_requested) {}
  WorkerContext(const WorkerContext&) = delete;
  WorkerContext& operator=(const WorkerContext&) = delete;

  /// The number of the worker (spec L11): 0 to `num_workers() - 1`.
  [[nodiscard]] std::size_t index() const noexcept { return static_cast<std::size_t>(session_->place().worker); }
  /// How many workers there were when the coordinator greeted this one.
  [[nodiscard]] std::size_t num_workers() const noexcept { return static_cast<std::size_t>(session_->place().workers); }
  /// The addresses of the parameter servers.
  [[nodiscard]] const std::vector<std::string>& servers() const noexcept { return session_->place().servers; }
  [[nodiscard]] InputContext input_context() const { return session_->input_context(); }

  /// The clients of these, for variables on them (ServerContext). They stay as long as the coordinator goes on with this worker.
  template <rpc::Transport T>
  [[nodiscard]] server::Clients<T>& clients() const {
    return session_->template clients<T>();
  }

  /// True if the result is not needed any more: another function has failed (spec L05), or the coordinator has ended or takes
  /// this worker for lost. A function that runs for long asks now and then, and returns: its result is Cancelled.
  [[nodiscard]] bool stop_requested() const {
    const bool stops = session_->ended() || stop_requested_();
    if (stops) knows_.store(true, std::memory_order_relaxed);
    return stops;
  }

  /// The object of this worker that a PerWorker names. A function calls it for a PerWorker inside a structure; one that is
  /// an argument is the object already.
  template <class T>
  [[nodiscard]] T& get(const PerWorker<T>& name) const {
    return *static_cast<T*>(session_->resource(name.id, &detail::type_mark<T>));
  }

 private:
  template <class F>
  friend struct detail::FunctionOnWorker;
  template <rpc::Transport Transport>
  friend class WorkerService;

  detail::WorkerSession* session_;
  detail::FunctionRef<bool()> stop_requested_;
  mutable std::atomic<bool> knows_{false};  ///< that it is to stop
  bool in_function_ = false;                ///< it has been called: an earlier exception is not the function's
};

}  // namespace dist
