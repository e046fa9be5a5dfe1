// expect: a ClusterCoordinator coordinates a ParameterServer, or the workers of a dist::WorkerList
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/strategy/default.hpp>

int main() {
#ifdef CONTROL
  dist::ClusterCoordinator coordinator{dist::WorkerList<dist::Local>{{{"here", "1"}}}};
#else
  dist::ClusterCoordinator coordinator{dist::Default{}};
#endif
}
