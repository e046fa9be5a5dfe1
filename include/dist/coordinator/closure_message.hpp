/// What a coordinator and its workers say to each other: the methods of a worker, their requests and their replies,
/// which are archives (server/archive.hpp). Both run the same program, which the greeting checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/coordinator/per_worker.hpp>
#include <dist/coordinator/remote_value.hpp>
#include <dist/coordinator/worker_context.hpp>
#include <dist/coordinator/worker_session.hpp>
#include <dist/core/config.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/registry.hpp>

namespace dist::detail {

/// Begins a session. A request is the identity of the coordinator's program, and only to a worker of the same program
/// what follows: the number of the session before, or 0, and a WorkerIdentity. The reply is the identity of the worker's
/// program and the number of the session, 0 where the programs differ.
inline constexpr std::string_view greet_method = "worker/greet";
/// A request is the number of a session. It is answered when the session ends, so that each side notices the end of the
/// other.
inline constexpr std::string_view watch_method = "worker/watch";
/// A request is the number of a session, that of a resource, and how to make it. The reply does not say whether the
/// function that makes it has thrown: the functions that use the resource fail then.
inline constexpr std::string_view make_method = "worker/make";
/// A request is the number of a session, the number of the run in it, and a closure's message. The reply is a CallStatus, followed by the
/// bytes of the result or by a RemoteFailure.
inline constexpr std::string_view run_method = "worker/run";
/// Asks the function of a run, and of those before, to stop. A request is the number of a session and the number of the run.
inline constexpr std::string_view stop_method = "worker/stop";
/// Ends a session. A request is its number.
inline constexpr std::string_view leave_method = "worker/leave";

struct Handshake {
  std::string program;
  std::uint64_t session = 0;
};

/// How a request to a worker ended. It is a number, so a text that a function throws is never taken for another kind.
enum class CallStatus : std::uint8_t {
  result = 0,
  thrown = 1,            ///< by the function
  resource = 2,          ///< a resource of the function could not be made
  server_lost = 3,       ///< a call of the function to a parameter server found it gone
  server_late = 4,       ///< a call of the function to a parameter server took too long
  server_cancelled = 5,  ///< a call of the function to a parameter server was cancelled
  refused = 6,           ///< the message names no function, or has other arguments than it takes
  no_session = 7,        ///< the session has ended: the worker was started again, or takes the coordinator for lost
  stopped = 8,           ///< the function has seen the request to stop
};
inline constexpr std::uint8_t last_ending = 8;

/// What follows a CallStatus other than `result`.
struct RemoteFailure {
  std::string thrown;  ///< the type of the exception
  std::string why;
  std::uint64_t server = 0;  ///< the number of the parameter server
};

template <class S, class F, class... Arguments>
using ResultOnWorker =
    decltype(std::declval<F&>()(std::declval<ContextOnWorker<S>&>(), std::declval<OnWorker<Arguments>>()...));

/// A variable that is a copy of what servers have, or that has nothing to do with servers.
template <class T>
concept HasCopyHere = requires(const T& variable) {
  typename T::Synchronization;
  variable.remote();
};

/// Refuses, in a sentence, what is no argument of a scheduled function, and says whether it is one.
template <class T>
[[nodiscard]] constexpr bool require_argument() {
  static_assert(
      !holds_remote_value<T>(),
      "a RemoteValue is no argument of a scheduled function, as its value may not be there yet: fetch it, and "
      "pass the value");
  static_assert(!HasCopyHere<T>,
                "a variable with a copy in this process is no argument of a scheduled function: give the network, the "
                "optimizer, the metric or the model that has it, or make it by strategy.variable<T>(shape)");
  if constexpr (holds_remote_value<T>() || HasCopyHere<T>)
    return false;
  else
    return require_sendable<T>();
}

/// The same for the function with its arguments.
template <class S, class F, class... Arguments>
[[nodiscard]] constexpr bool require_scheduled_call() {
  if constexpr (require_schedulable<F>() && (require_argument<Arguments>() && ...)) {
    constexpr bool called = is_callable<F, ContextOnWorker<S>&, OnWorker<Arguments>...>();
    static_assert(
        called,
        "a scheduled function is called with a dist::WorkerContext& and its arguments, as lvalues; a PerWorker is "
        "an object of the worker there");
    return called;
  } else {
    return false;
  }
}

/// The same for a function that makes a resource, or a dataset.
template <bool of_data, class F, class... Arguments>
[[nodiscard]] constexpr bool require_resource_call() {
  if constexpr (require_schedulable<F>() && (require_argument<Arguments>() && ...)) {
    constexpr bool called = is_callable<F, const InputContext&, Arguments&...>();
    static_assert(
        called,
        "a function that makes a per-worker dataset or resource is called with a const dist::InputContext& and "
        "its arguments, as lvalues");
    if constexpr (called) {
      using Made = std::invoke_result_t<F&, const InputContext&, Arguments&...>;
      constexpr bool is_value = !std::is_void_v<Made> && !std::is_reference_v<Made>;
      static_assert(is_value, "a function that makes a per-worker dataset or resource returns it by value");
      static_assert(!is_value || !of_data || data::Dataset<Made>,
                    "create_per_worker_dataset takes a function that returns a dataset: for other objects there is "
                    "create_per_worker_resource");
      return is_value && (!of_data || data::Dataset<Made>);
    }
  }
  return false;
}

/// The message of a closure, without the number of the session.
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
/// The same for a resource.
template <class F, class... Arguments>
[[nodiscard]] std::vector<std::byte> resource_message(const F& function, const Arguments&... arguments) {
  ArchiveWriter message;
  message.put(FunctionTable<ResourceMaker>::template number<&make_resource<F, Arguments...>>());
  message.put(function);
  (message.put(arguments), ...);
  return message.take();
}

}  // namespace dist::detail
