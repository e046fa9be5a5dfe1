// expect: this optimizer, as nn::Lamb, takes norms of what its slots make of a parameter's gradients, and these are on several parameter servers
#include <dist/async/server_optimizer.hpp>
#include <dist/cluster/simple_resolver.hpp>
#include <dist/comm/local_transport.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/input.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/lamb.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

int main() {
  dist::ParameterServer<dist::Local> strategy{dist::SimpleResolver{{}}};
  nn::ServerNetwork<nn::Sequential<nn::Input<2>, nn::Dense<1>>, nn::Reference, dist::Local> net{strategy};
#ifdef CONTROL
  nn::ServerOptimizer optimizer{strategy, net, nn::Adam{}};
#else
  nn::ServerOptimizer optimizer{strategy, net, nn::Lamb{}};
#endif
}
