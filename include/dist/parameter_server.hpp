/// Asynchronous training with parameter servers: ParameterServer, ClusterCoordinator, serve, variables on servers,
/// partitioners and embeddings, with the transport Local. Several processes also need <dist/rpc/grpc/transport.hpp>.
#pragma once

#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/serve.hpp>
#include <dist/dist.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/strategy/parameter_server.hpp>
#include <dist/variable/embedding.hpp>
#include <dist/variable/make_sharded_variable.hpp>
#include <dist/variable/partitioner.hpp>

/// The templates that compiled.ipp instantiates for the transport Local, and compiled_crypto_grpc.ipp for Grpc.
#define DIST_PARAMETER_SERVER_TEMPLATES(declared, T)                                                              \
  declared template class dist::server::Client<T>;                                                                \
  declared template class dist::server::Clients<T>;                                                               \
  declared template class dist::server::PendingMessage<T, dist::server::PullRequest>;                             \
  declared template class dist::server::PendingMessage<T, dist::server::PushRequest>;                             \
  declared template class dist::server::Batch<T>;                                                                 \
  declared template class dist::server::CachedVariable<T>;                                                        \
  declared template class dist::server::VariableCache<T>;                                                         \
  declared template class dist::server::Session<T>;                                                               \
  declared template class dist::server::Lifeline<T::Exchange>;                                                    \
  declared template void dist::server::detail::serve_task<T>(const ClusterSpec&, const Task&, const std::string&, \
                                                             const dist::server::ServeOptions&,                   \
                                                             std::vector<dist::rpc::Method<T::Exchange>>);        \
  declared template std::shared_ptr<dist::server::Clients<T>> dist::detail::WorkerSession::clients<T>();          \
  declared template class dist::WorkerLink<T>;                                                                    \
  declared template class dist::WorkerService<T>;                                                                 \
  declared template class dist::ParameterServer<T>;                                                               \
  declared template dist::ParameterServer<T>& dist::detail::WorkerSession::strategy<dist::ParameterServer<T>>();  \
  declared template class dist::ClusterCoordinator<dist::ParameterServer<T>>;

#ifdef DIST_COMPILED
namespace dist {
DIST_PARAMETER_SERVER_TEMPLATES(extern, Local)
}  // namespace dist
#if __has_include(<dist/rpc/grpc/transport.hpp>)  // an installation has it only with gRPC
#include <dist/rpc/grpc/transport.hpp>
namespace dist {
DIST_PARAMETER_SERVER_TEMPLATES(extern, Grpc)
}  // namespace dist
#endif
#endif
