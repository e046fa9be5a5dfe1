// expect: a scheduled function runs in another process, without its captures
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/rpc/local_transport.hpp>

int main() {
  dist::ClusterCoordinator coordinator{dist::WorkerList<dist::Local>{{{"here", "1"}}}};
  int summand = 1;
#ifdef CONTROL
  coordinator.schedule([](dist::WorkerContext&, int x) { return x + 1; }, summand);
#else
  coordinator.schedule([&](dist::WorkerContext&) { return summand; });
#endif
}
