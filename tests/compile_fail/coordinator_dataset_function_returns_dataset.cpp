// expect: create_per_worker_dataset takes a function that returns a dataset
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/data/range.hpp>
#include <dist/rpc/local_transport.hpp>

int main() {
  dist::ClusterCoordinator coordinator{dist::WorkerList<dist::Local>{{{"here", "1"}}}};
#ifdef CONTROL
  coordinator.create_per_worker_dataset([](const dist::InputContext&) { return dist::data::range(0, 9); });
#else
  coordinator.create_per_worker_dataset([](const dist::InputContext&) { return 9; });
#endif
}
