// A ParameterServer whose servers are threads of this process, for the typed suites: `run` computes on the coordinator.
#pragma once

#include <cstddef>
#include <utility>

#include <dist/coordinator/local_job.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/strategy/parameter_server.hpp>
#include <dist/variable/partitioner.hpp>
#include <dist/variable/policies.hpp>

namespace conformance {

struct ServedTasks {
  dist::LocalJob job{2, 1};
};

/// Tensors are divided into this number of shards on two servers. Variables without a synchronization have a copy here,
/// as under other strategies.
template <std::size_t shards>
class Served : private ServedTasks, public dist::ParameterServer<dist::Local> {
 public:
  Served() : ParameterServer(job.resolver(), {.partitioner = dist::FixedShards{shards}}) {}

  template <class E, dist::Synchronization Sync = dist::OnWrite, dist::Aggregation Agg = dist::None, class... Given>
  [[nodiscard]] auto variable(dist::Shape shape, Given&&... given) {
    return ParameterServer::variable<E, Sync, Agg>(shape, std::forward<Given>(given)...);
  }
};

}  // namespace conformance
