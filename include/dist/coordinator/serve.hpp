/// The whole life of a process that a ClusterCoordinator works with.
#pragma once

#include <dist/coordinator/worker_service.hpp>
#include <dist/core/config.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/serve.hpp>

namespace dist {

/// A process that is a parameter server or a worker serves until its coordinator has done its work, and returns true: a
/// worker runs the functions that the coordinator schedules. In the coordinator, which is the chief, it returns false at
/// once (spec J12, R01).
///
///   int main() {
///     const dist::TfConfigResolver resolver;
///     if (dist::serve<dist::Grpc>(resolver)) return 0;
///     …  // the coordinator
///   }
///
/// How long the process waits for a coordinator, and what it throws, is in server::serve.
template <class T, class Resolver>
[[nodiscard]] bool serve(const Resolver& resolver, const server::ServeOptions& options = {}) {
  if constexpr (detail::satisfied<rpc::Transport<T>> && detail::satisfied<ClusterResolver<Resolver>>) {
    // What it calls, it calls as it is called.
    WorkerService<T> worker{{.secret = job_secret(options.server.secret, resolver),
                             .tls = options.server.tls,
                             .silence = options.server.silence}};
    return server::serve<T>(resolver, options, worker.methods());
  } else {
    return server::serve<T>(resolver, options);  // says what is wrong
  }
}

}  // namespace dist
