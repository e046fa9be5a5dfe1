/// Workers' copies of objects of a ParameterServer, and the context in which scheduled functions use them.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/replica_context.hpp>
#include <dist/context/worker_copies.hpp>
#include <dist/coordinator/coordinator_state.hpp>
#include <dist/coordinator/worker_session.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/variable_cache.hpp>

namespace dist {

namespace detail {

/// Variables on servers with copies in this process.
template <class S>
using CachedVariables = std::vector<std::shared_ptr<typename S::Store::Variable>>;

}  // namespace detail

/// The first argument of functions that the coordinator of a ParameterServer schedules: the replica on the worker. A
/// function is a step: it reads variables as of their first use, and pushes its writes when it returns. If it throws,
/// unsent writes are discarded.
template <class S>
class WorkerReplicaContext : public ReplicaContext<S>, public WorkerContext {
 public:
  /// `wanted`, the variables of the function's arguments, must outlive the context.
  WorkerReplicaContext(const ReplicaContext<S>& replica, const WorkerContext& worker,
                       const detail::CachedVariables<S>& wanted)
      : ReplicaContext<S>(replica), WorkerContext(worker), wanted_(&wanted) {}

  /// Pushes all writes, and begins another step. Throws ServerUnavailable, StoreError or RpcError.
  void next_step() const { this->strategy().variable_cache().next_step(*wanted_); }

 private:
  const detail::CachedVariables<S>* wanted_;
};

namespace detail {

template <class S>
inline constexpr bool extends_replica_context<WorkerReplicaContext<S>> = true;

/// The form in which a value is sent to a worker: for an object with copies there, a reference to the copy.
template <class T>
struct OnWireOf {
  using Type = T;
};
template <HasWorkerCopies T>
struct OnWireOf<T> {
  using Type = PerWorker<T>;
};
template <class T>
using OnWire = typename OnWireOf<std::remove_cvref_t<T>>::Type;

/// Returns the argument that a function gets on a worker (spec L03).
template <class T>
[[nodiscard]] T& on_worker(WorkerSession&, T& argument) {
  return argument;
}
template <class T>
[[nodiscard]] T& on_worker(WorkerSession& session, PerWorker<T>& name) {
  return *static_cast<T*>(session.resource(name.id, &type_mark<T>));
}
template <class T>
using OnWorker = decltype(on_worker(std::declval<WorkerSession&>(), std::declval<T&>()));

/// Adds the variables of the worker's copy that an argument refers to, if any.
template <class S, class T>
void add_variables([[maybe_unused]] CachedVariables<S>& variables, [[maybe_unused]] const WorkerSession& session,
                   [[maybe_unused]] const T& argument) {
  if constexpr (is_specialization<T, PerWorker>)
    if (const auto of_copy = std::static_pointer_cast<CachedVariables<S>>(session.variables_of(argument.id)))
      S::Store::Cache::append(variables, *of_copy);
}

/// Creates the worker's copy of an `X` from the coordinator's variables and the arguments of its constructor.
template <class S, class X, class... Arguments>
WorkerResource make_worker_copy(WorkerSession& session, ArchiveReader& archive) {
  struct Copy {
    ArchivedTexts texts;  // owns texts in the arguments and the object
    std::optional<std::tuple<OnWire<Arguments>...>> arguments;
    std::unique_ptr<X> object;
  };
  S& strategy = session.template strategy<S>();
  const auto copy = std::make_shared<Copy>();
  auto specs = archive.get<std::vector<server::CachedVariableSpec>>();
  auto& arguments = copy->arguments.emplace(archive.get_with_texts<std::tuple<OnWire<Arguments>...>>(copy->texts));
  archive.expect_end();
  const auto variables = std::make_shared<CachedVariables<S>>();
  std::apply([&](const auto&... argument) { (add_variables<S>(*variables, session, argument), ...); }, arguments);
  const std::uint64_t first = strategy.variable_cache().count();
  strategy.attach(std::move(specs));
  std::apply([&](auto&... argument) { copy->object.reset(new X(strategy, on_worker(session, argument)...)); },
             arguments);
  strategy.attach({});
  S::Store::Cache::append(*variables, strategy.variable_cache().since(first));
  return {std::shared_ptr<void>(copy, copy->object.get()), &type_mark<X>, {}, variables};
}

/// Returns the message with which workers create copies of `object`, from the `arguments` of its constructor.
/// `on_wire(argument)` is the form in which each is sent.
template <class S, class X, class... Arguments, class OnWire>
[[nodiscard, gnu::cold]] std::vector<std::byte> worker_copy_message(const S& strategy, const X& object,
                                                                    const std::tuple<Arguments...>& arguments,
                                                                    const OnWire& on_wire) {
  ArchiveWriter message;
  message.put(FunctionTable<ResourceMaker>::template number<&make_worker_copy<S, X, Arguments...>>());
  message.put(strategy.variable_cache().specs_since(object.variables_made().first()));
  std::apply([&](const auto&... argument) { (message.put_with_texts(on_wire(argument)), ...); }, arguments);
  return message.take();
}

}  // namespace detail

}  // namespace dist
