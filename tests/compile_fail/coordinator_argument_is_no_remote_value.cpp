// expect: a RemoteValue cannot be an argument of a scheduled function, because its value may not be available yet
#include <vector>

#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/rpc/local_transport.hpp>

int main() {
  dist::ClusterCoordinator coordinator{dist::WorkerList<dist::Local>{{{"here", "1"}}}};
  const std::vector values{coordinator.schedule([](dist::WorkerContext&) { return 1; })};
  const auto size = [](dist::WorkerContext&, const auto& list) { return list.size(); };
#ifdef CONTROL
  coordinator.schedule(size, coordinator.fetch(values));
#else
  coordinator.schedule(size, values);
#endif
}
