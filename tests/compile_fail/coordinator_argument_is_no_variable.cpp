// expect: a variable with a copy in this process cannot be an argument of a scheduled function: pass the network
#include <dist/parameter_server.hpp>

void train(dist::ParameterServer<dist::Local>& strategy) {
#ifndef CONTROL
  auto variable = strategy.variable<float, dist::OnWrite>({2});
#else
  auto variable = strategy.variable<float>({2});
#endif
  dist::ClusterCoordinator coordinator{strategy};
  coordinator.schedule([](auto& worker, auto& its) { its.assign_add(worker, 1.0F); }, variable);
}

int main() {}
