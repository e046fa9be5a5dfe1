#pragma once

#include <concepts>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/server/clients.hpp>

namespace dist {

namespace detail {

template <class C, class T>
concept ScopeOfServers = (InCrossReplica<C> || InReplica<C>)&&requires(const C& context) {
  { context.strategy().clients() } -> std::same_as<server::Clients<T>&>;
};
template <class C, class T>
concept WorkerOfServers = requires(const C& context) {
  { context.template clients<T>() } -> std::same_as<server::Clients<T>&>;
};

}  // namespace detail

/// Where variables on parameter servers are used, whose calls travel by `T`: the scope of a ParameterServer on the
/// coordinator, a replica function that it runs, or the context of a scheduled function on a worker.
template <class C, class T>
concept ServerContext = detail::ScopeOfServers<C, T> || detail::WorkerOfServers<C, T>;

namespace server {

/// The clients that a context has.
template <class T, ServerContext<T> Context>
[[nodiscard]] Clients<T>& clients_of(const Context& context) {
  if constexpr (dist::detail::ScopeOfServers<Context, T>)
    return context.strategy().clients();
  else
    return context.template clients<T>();
}

}  // namespace server

}  // namespace dist
