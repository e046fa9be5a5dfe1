// expect: nn::skip_aggregation needs a copy of the parameters on every replica (spec P08): a ParameterServer keeps the parameters on its servers
#include <dist/nn.hpp>
#include <dist/parameter_server.hpp>

namespace nn = dist::nn;

#ifndef CONTROL
using Strategy = dist::ParameterServer<dist::Local>;
#else
using Strategy = dist::Default;
#endif

void train(Strategy& strategy) {
  nn::Network<nn::Sequential<nn::Input<2>, nn::Dense<1>>> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{}};
  strategy.run([&](auto& replica) { optimizer.apply_gradients(replica, nn::skip_aggregation); });
}

int main() {}
