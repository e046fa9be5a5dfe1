/// The main function of a process that serves a ClusterCoordinator.
#pragma once

#include <dist/coordinator/worker_service.hpp>
#include <dist/core/config.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/serve.hpp>

namespace dist {

/// Serves as a parameter server or worker until the coordinator has finished, and returns true. A worker runs the
/// functions that the coordinator schedules. In the coordinator, the chief, returns false at once (spec J12, R01).
///
///   int main() {
///     const dist::TfConfigResolver resolver;
///     if (dist::serve<dist::Grpc>(resolver)) return 0;
///     …  // the coordinator
///   }
///
/// See server::serve for its timeouts and errors.
template <class T, class Resolver>
[[nodiscard]] bool serve(const Resolver& resolver, const server::ServeOptions& options = {}) {
  if constexpr (detail::satisfied<rpc::Transport<T>> && detail::satisfied<ClusterResolver<Resolver>>) {
    // The worker calls servers with the same secret and certificates.
    WorkerService<T> worker{{.secret = job_secret(options.server.secret, resolver),
                             .tls = options.server.tls,
                             .silence = options.server.silence}};
    return server::serve<T>(resolver, options, worker.methods());
  } else {
    return server::serve<T>(resolver, options);  // reports the error
  }
}

}  // namespace dist
