// expect: a scheduled function is called with a dist::WorkerContext& and its arguments
#include <dist/comm/local_transport.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>

int main() {
  dist::ClusterCoordinator coordinator{dist::WorkerList<dist::Local>{{{"here", "1"}}}};
#ifdef CONTROL
  coordinator.schedule([](dist::WorkerContext&, int x) { return x; }, 1);
#else
  coordinator.schedule([](int x) { return x; }, 1);
#endif
}
