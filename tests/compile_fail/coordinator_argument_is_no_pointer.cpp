// expect: a pointer cannot be sent, because its target is in this process
#include <string>

#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/rpc/local_transport.hpp>

int main() {
  dist::ClusterCoordinator coordinator{dist::WorkerList<dist::Local>{{{"here", "1"}}}};
  const auto print = [](dist::WorkerContext&, const auto& text) { return std::string{text}; };
#ifdef CONTROL
  coordinator.schedule(print, std::string("text"));
#else
  coordinator.schedule(print, "text");
#endif
}
