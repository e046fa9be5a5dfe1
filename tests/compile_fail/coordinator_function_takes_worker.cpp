// expect: a scheduled function must be callable with a dist::WorkerContext& and its arguments
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/rpc/local_transport.hpp>

int main() {
  dist::ClusterCoordinator coordinator{dist::WorkerList<dist::Local>{{{"here", "1"}}}};
#ifdef CONTROL
  coordinator.schedule([](dist::WorkerContext&, int x) { return x; }, 1);
#else
  coordinator.schedule([](int x) { return x; }, 1);
#endif
}
