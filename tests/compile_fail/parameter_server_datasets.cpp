// expect: the workers of a ParameterServer make their own datasets: give a function that makes one to create_per_worker_dataset of the ClusterCoordinator
#include <dist/cluster/cluster_resolver.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/range.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/strategy/parameter_server.hpp>

int main() {
  const dist::SimpleResolver resolver{{}};
  dist::ParameterServer<dist::Local> strategy{resolver};
#ifndef CONTROL
  strategy.distribute_dataset(dist::data::range(8) | dist::data::batch(2));  // spec J11
#endif
  return static_cast<int>(strategy.num_workers());
}
