// expect: a pointer cannot be sent
#include <dist/nn.hpp>
#include <dist/parameter_server.hpp>

namespace nn = dist::nn;

struct Schedule {
#ifndef CONTROL
  const float* rates = nullptr;
#else
  float rate = 0;
#endif
  float operator()(std::int64_t) const { return 0.1F; }
};

void train(dist::ParameterServer<dist::Local>& strategy) {
  nn::Network<nn::Sequential<nn::Input<2>, nn::Dense<1>>> net{strategy};
  const nn::Optimizer optimizer{strategy, net, nn::With{nn::SGD{}, Schedule{}}};
  dist::ClusterCoordinator coordinator{strategy};
  coordinator.schedule([](auto& replica, auto&, auto& its_optimizer) { its_optimizer.apply_gradients(replica); }, net,
                       optimizer);
}

int main() {}
