/// Copies that workers make of objects of a ParameterServer, and the context in which scheduled functions work with them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/replica_context.hpp>
#include <dist/context/worker_copies.hpp>
#include <dist/coordinator/coordinator_state.hpp>
#include <dist/coordinator/worker_context.hpp>
#include <dist/coordinator/worker_session.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/variable_cache.hpp>

namespace dist {

namespace detail {

/// Variables on servers that have copies in this process.
template <class S>
using CachedVariables = std::vector<std::shared_ptr<typename S::Store::Variable>>;

}  // namespace detail

/// The first argument of a function that the coordinator of a ParameterServer schedules: the replica that runs it, on a worker. A
/// function is a step: it reads variables as they were when it began, or as it first needed them, and what it writes is pushed when it
/// returns. What it has not pushed is dropped where it throws.
template <class S>
class WorkerReplicaContext : public ReplicaContext<S>, public WorkerContext {
 public:
  /// `wanted`: the variables of the function's arguments, which outlive this.
  WorkerReplicaContext(const ReplicaContext<S>& replica, const WorkerContext& worker,
                       const detail::CachedVariables<S>& wanted)
      : ReplicaContext<S>(replica), WorkerContext(worker), wanted_(&wanted) {}

  /// Ends the step, as if the function had returned, and begins another one: what was written is pushed, and what has changed is
  /// pulled. Throws ServerUnavailable, StoreError or RpcError.
  void next_step() const { this->strategy().variable_cache().next_step(*wanted_); }

 private:
  const detail::CachedVariables<S>* wanted_;
};

namespace detail {

template <class S>
inline constexpr bool extends_replica_context<WorkerReplicaContext<S>> = true;

/// A value on its way to a worker: of an object with copies there, the name of the worker's own.
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

/// An argument as a function, or the constructor of a copy, sees it on a worker (spec L03).
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

/// Adds the variables of the worker's copy that an argument names, if it names one.
template <class S, class T>
void add_variables([[maybe_unused]] CachedVariables<S>& variables, [[maybe_unused]] const WorkerSession& session,
                   [[maybe_unused]] const T& argument) {
  if constexpr (is_specialization<T, PerWorker>)
    if (const auto of_copy = std::static_pointer_cast<CachedVariables<S>>(session.variables_of(argument.id)))
      variables.insert(variables.end(), of_copy->begin(), of_copy->end());
}

/// Makes the worker's copy of an `X` from the variables of the coordinator's and the arguments of its constructor.
template <class S, class X, class... Arguments>
WorkerResource make_worker_copy(WorkerSession& session, ArchiveReader& archive) {
  struct Copy {
    ArchivedTexts texts;  // to which the arguments refer, as the object does to them
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
  for (auto& variable : strategy.variable_cache().since(first)) variables->push_back(std::move(variable));
  return {std::shared_ptr<void>(copy, copy->object.get()), &type_mark<X>, {}, variables};
}

/// How workers make their copies of `object`, whose constructor got `arguments`: `on_wire(argument)` is each as it travels.
template <class S, class X, class... Arguments, class OnWire>
[[nodiscard]] std::vector<std::byte> worker_copy_message(const S& strategy, const X& object,
                                                         const std::tuple<Arguments...>& arguments,
                                                         const OnWire& on_wire) {
  std::vector<server::CachedVariableSpec> specs;
  for (const auto& variable : strategy.variable_cache().since(object.variables_made().first()))
    specs.push_back(variable->spec());
  ArchiveWriter message;
  message.put(FunctionTable<ResourceMaker>::template number<&make_worker_copy<S, X, Arguments...>>());
  message.put(specs);
  std::apply([&](const auto&... argument) { (message.put_with_texts(on_wire(argument)), ...); }, arguments);
  return message.take();
}

}  // namespace detail

}  // namespace dist
