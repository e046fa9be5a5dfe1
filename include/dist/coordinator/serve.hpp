#pragma once

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/comm/rpc.hpp>
#include <dist/coordinator/worker_service.hpp>
#include <dist/server/serve.hpp>

namespace dist {

using server::ServeOptions;

/// The whole life of a process of a job with parameter servers that is not its coordinator (spec J12, R01): a parameter server
/// holds variables, a worker runs what is scheduled, until the coordinator has done its work. Then returns true. In the
/// coordinator, which is the chief, returns false at once:
///
///     const dist::TfConfigResolver resolver;
///     if (dist::serve<dist::Grpc>(resolver)) return 0;
///     dist::ParameterServer<dist::Grpc> strategy{resolver};
///
/// `T` is what calls travel by. See server::serve, which says what it throws.
template <class T, class Resolver>
[[nodiscard]] bool serve(const Resolver& resolver, const ServeOptions& options = {}) {
  if constexpr (server::detail::require_served<T, Resolver>()) {
    WorkerService<T> worker;
    return server::serve<T>(resolver, options, worker.methods());
  } else {
    return false;
  }
}

}  // namespace dist
