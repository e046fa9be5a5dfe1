// expect: a function that makes a per-worker dataset or resource must be callable with a const dist::InputContext&
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/rpc/local_transport.hpp>

int main() {
  dist::ClusterCoordinator coordinator{dist::WorkerList<dist::Local>{{{"here", "1"}}}};
#ifdef CONTROL
  coordinator.create_per_worker_resource([](const dist::InputContext&) { return 9; });
#else
  coordinator.create_per_worker_resource([](dist::WorkerContext&) { return 9; });
#endif
}
