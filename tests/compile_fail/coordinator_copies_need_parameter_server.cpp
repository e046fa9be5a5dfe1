// expect: a network, an optimizer, a metric or a model can only be an argument of a function that the coordinator of a
#include <dist/nn.hpp>
#include <dist/parameter_server.hpp>

namespace nn = dist::nn;

void train(dist::ParameterServer<dist::Local>& strategy, const dist::WorkerList<dist::Local>& workers) {
  nn::Network<nn::Sequential<nn::Input<2>, nn::Dense<1>>> net{strategy};
#ifndef CONTROL
  dist::ClusterCoordinator coordinator{workers};
#else
  static_cast<void>(workers);
  dist::ClusterCoordinator coordinator{strategy};
#endif
  coordinator.schedule([](auto&, auto&) {}, net);
}

int main() {}
