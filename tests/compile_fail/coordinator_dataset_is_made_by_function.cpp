// expect: a scheduled function runs in another process, without its captures
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/data/range.hpp>
#include <dist/rpc/local_transport.hpp>

int main() {
  dist::ClusterCoordinator coordinator{dist::WorkerList<dist::Local>{{{"here", "1"}}}};
  const auto dataset = dist::data::range(0, 9);
#ifdef CONTROL
  coordinator.create_per_worker_dataset([](const dist::InputContext&) { return dist::data::range(0, 9); });
  static_cast<void>(dataset);
#else
  coordinator.create_per_worker_dataset(dataset);
#endif
}
