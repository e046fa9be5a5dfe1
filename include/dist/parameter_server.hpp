/// Asynchronous training with parameter servers: ParameterServer, ClusterCoordinator, serve, variables on servers, partitioners and
/// embeddings, with the transport Local. Processes need <dist/rpc/grpc/transport.hpp> as well.
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
