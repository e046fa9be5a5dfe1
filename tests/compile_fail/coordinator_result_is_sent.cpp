// expect: a std::string_view cannot be sent, because its text is in this process
#include <string>
#include <string_view>

#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/rpc/local_transport.hpp>

int main() {
  dist::ClusterCoordinator coordinator{dist::WorkerList<dist::Local>{{{"here", "1"}}}};
#ifdef CONTROL
  coordinator.schedule([](dist::WorkerContext&) { return std::string("text"); });
#else
  coordinator.schedule([](dist::WorkerContext&) { return std::string_view("text"); });
#endif
}
