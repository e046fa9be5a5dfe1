#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/input_context.hpp>
#include <dist/coordinator/coordinator_state.hpp>
#include <dist/coordinator/remote_value.hpp>
#include <dist/coordinator/worker_copy.hpp>
#include <dist/coordinator/worker_session.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/dataset.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/registry.hpp>

namespace dist {

/// Error at the end of a pass over a worker's dataset.
class OutOfData : public Error {
 public:
  using Error::Error;
};

/// An iterator over a worker's dataset that continues from function to function (spec L09).
template <class D>
  requires data::Dataset<D>
class PerWorkerIterator {
 public:
  /// The type of the dataset's elements.
  using Element = data::ElementOf<D>;

  /// Starts the first pass at the first `next`.
  explicit PerWorkerIterator(D dataset) : dataset_(std::move(dataset)) {}
  PerWorkerIterator(const PerWorkerIterator&) = delete;
  PerWorkerIterator& operator=(const PerWorkerIterator&) = delete;

  /// Returns the next element, valid until the next call. Throws OutOfData at the end of the pass.
  [[nodiscard]] const Element& next() {
    if (!next(element_))
      throw OutOfData("The dataset of a worker has no more elements", "its pass has ended",
                      "Schedule no more steps than it has elements, call restart(), or repeat the dataset");
    return element_;
  }
  /// Stores the next element. Returns false from the end of the pass on.
  [[nodiscard]] bool next(Element& element) {
    if (!pass_) pass_.emplace(dataset_.iterate(epoch_));
    return pass_->next(element);
  }
  /// Begins the next pass over the data.
  void restart() {
    pass_.reset();
    ++epoch_;
  }

 private:
  const D dataset_;
  std::uint64_t epoch_ = 0;
  std::optional<data::IteratorOf<D>> pass_;
  Element element_{};
};

namespace detail {

/// The type of a worker's resource: for a dataset, an iterator over it.
template <class Made>
struct ResourceOf {
  using Type = Made;
};
template <class Made>
  requires data::Dataset<Made>
struct ResourceOf<Made> {
  using Type = PerWorkerIterator<Made>;
};

template <class F, class... Arguments>
WorkerResource make_resource(WorkerSession& session, ArchiveReader& archive) {
  F function = archive.get<F>();
  auto arguments = archive.get<std::tuple<Arguments...>>();
  archive.expect_end();
  const InputContext context = session.input_context();
  const auto call = [&](Arguments&... given) { return function(context, given...); };
  using Resource = typename ResourceOf<decltype(std::apply(call, arguments))>::Type;
  // Not make_shared: the result of the function may be neither copyable nor movable.
  return {std::shared_ptr<Resource>(new Resource(std::apply(call, arguments))), &type_mark<Resource>};
}

/// The first argument of scheduled functions, according to the coordinator's strategy.
template <class S>
struct ContextOnWorkerOf {
  using Type = WorkerContext;
};
template <HasWorkerStrategy S>
struct ContextOnWorkerOf<S> {
  using Type = WorkerReplicaContext<S>;
};
template <class S>
using ContextOnWorker = typename ContextOnWorkerOf<S>::Type;

/// A scheduled function as the worker calls it.
template <class S, class F>
struct FunctionOnWorker {
  F function;

  template <class... Arguments>
  decltype(auto) operator()(WorkerContext& worker, Arguments&... arguments) {
    std::tuple<OnWorker<Arguments>...> here{on_worker(worker.session(), arguments)...};
    const auto call = [&](auto& context) -> decltype(auto) {
      return std::apply([&](auto&... given) -> decltype(auto) { return function(context, given...); }, here);
    };
    worker.function_run().in_function = true;
    if constexpr (HasWorkerStrategy<S>) {
      CachedVariables<S> wanted;
      (add_variables<S>(wanted, worker.session(), arguments), ...);
      return worker.session().template strategy<S>().run_step(wanted, [&](const auto& replica) -> decltype(auto) {
        WorkerReplicaContext<S> context{replica, worker, wanted};
        return call(context);
      });
    } else {
      return call(worker);
    }
  }
};

// ---- protocol of coordinator and workers: the methods of a worker, their requests and replies ----

/// Begins a session. The request is the identity of the coordinator's program and, only for the same program, the
/// number of the previous session, or 0, and a WorkerIdentity. The reply is the identity of the worker's program and
/// the number of the session, or 0 for different programs.
inline constexpr std::string_view greet_method = "worker/greet";
/// Watches a session. The request is its number. The reply is sent at its end, so that each side notices the end of the
/// other.
inline constexpr std::string_view watch_method = "worker/watch";
/// Creates a resource. The request is the numbers of session and resource, and how to create it. If that throws, not
/// this call but the functions that use the resource fail.
inline constexpr std::string_view make_method = "worker/make";
/// Runs a function. The request is the numbers of session and run, and the message of a closure. The reply is a
/// CallStatus, followed by the result or a RemoteFailure.
inline constexpr std::string_view run_method = "worker/run";
/// Asks the function of a run, and of earlier runs, to stop. The request is the numbers of session and run.
inline constexpr std::string_view stop_method = "worker/stop";
/// Ends a session. The request is its number.
inline constexpr std::string_view leave_method = "worker/leave";

struct Handshake {
  std::string program;
  std::uint64_t session = 0;
};

/// The outcome of a request to a worker, as a number that the text of an exception cannot imitate.
enum class CallStatus : std::uint8_t {
  result = 0,
  thrown = 1,            ///< the function threw
  resource = 2,          ///< a resource of the function could not be created
  server_lost = 3,       ///< a parameter server was unavailable
  server_late = 4,       ///< a call to a parameter server timed out
  server_cancelled = 5,  ///< a call to a parameter server was cancelled
  refused = 6,           ///< unknown function or wrong arguments
  no_session = 7,        ///< the session has ended: the worker was restarted, or has lost the coordinator
  stopped = 8,           ///< the function has obeyed the request to stop
};

/// Details for a CallStatus other than `result`.
struct RemoteFailure {
  std::string thrown;  ///< type of the exception
  std::string why;
  std::uint64_t server = 0;  ///< index of the parameter server
};

template <class S, class F, class... Arguments>
using ResultOnWorker =
    decltype(std::declval<F&>()(std::declval<ContextOnWorker<S>&>(), std::declval<OnWorker<Arguments>>()...));

/// A variable with a copy in this process, or without relation to servers.
template <class T>
concept HasCopyHere = requires(const T& variable) {
  typename T::Synchronization;
  variable.remote();
};

/// Fails to compile with an explanation if `T` cannot be an argument of a scheduled function.
template <class T>
[[nodiscard]] constexpr bool require_argument() {
  static_assert(!holds_remote_value<T>(),
                "a RemoteValue cannot be an argument of a scheduled function, because its value may not be available "
                "yet: fetch it, and pass the value");
  static_assert(
      !HasCopyHere<T>,
      "a variable with a copy in this process cannot be an argument of a scheduled function: pass the network, the "
      "optimizer, the metric or the model that contains it, or create it with strategy.variable<T>(shape)");
  if constexpr (holds_remote_value<T>() || HasCopyHere<T>)
    return false;
  else
    return require_sendable<T>();
}

/// Fails to compile with an explanation if `F` cannot be scheduled with the arguments.
template <class S, class F, class... Arguments>
[[nodiscard]] constexpr bool require_scheduled_call() {
  if constexpr (require_schedulable<F>() && (require_argument<Arguments>() && ...)) {
    constexpr bool called = is_callable<F, ContextOnWorker<S>&, OnWorker<Arguments>...>();
    static_assert(called,
                  "a scheduled function must be callable with a dist::WorkerContext& and its arguments as lvalues; for "
                  "a PerWorker, it receives the worker's object");
    return called;
  } else {
    return false;
  }
}

/// Fails to compile with an explanation if `F` cannot create a resource, or a dataset.
template <bool of_data, class F, class... Arguments>
[[nodiscard]] constexpr bool require_resource_call() {
  if constexpr (require_schedulable<F>() && (require_argument<Arguments>() && ...)) {
    constexpr bool called = is_callable<F, const InputContext&, Arguments&...>();
    static_assert(called,
                  "a function that makes a per-worker dataset or resource must be callable with a const "
                  "dist::InputContext& and its arguments as lvalues");
    if constexpr (called) {
      using Made = std::invoke_result_t<F&, const InputContext&, Arguments&...>;
      constexpr bool is_value = !std::is_void_v<Made> && !std::is_reference_v<Made>;
      static_assert(is_value, "a function that makes a per-worker dataset or resource must return it by value");
      static_assert(!is_value || !of_data || data::Dataset<Made>,
                    "create_per_worker_dataset takes a function that returns a dataset: use create_per_worker_resource "
                    "for other objects");
      return is_value && (!of_data || data::Dataset<Made>);
    }
  }
  return false;
}

/// Encodes a closure, without the session's number.
template <class S, class F, class... Arguments>
[[nodiscard]] std::vector<std::byte> closure_message(const F& function, const Arguments&... arguments) {
  using Called = FunctionOnWorker<S, F>;
  ArchiveWriter message;
  message.put(
      FunctionTable<Invocation<WorkerContext>>::template number<&invoke<WorkerContext, Called, Arguments...>>());
  message.put(Called{function});
  (message.put(arguments), ...);
  return message.take();
}
/// Encodes the function that creates a resource, with its arguments.
template <class F, class... Arguments>
[[nodiscard]] std::vector<std::byte> resource_message(const F& function, const Arguments&... arguments) {
  ArchiveWriter message;
  message.put(FunctionTable<ResourceMaker>::template number<&make_resource<F, Arguments...>>());
  message.put(function);
  (message.put(arguments), ...);
  return message.take();
}

}  // namespace detail

}  // namespace dist
