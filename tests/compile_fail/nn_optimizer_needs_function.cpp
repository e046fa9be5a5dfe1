// expect: the third argument of an optimizer must be an nn::OptimizerFunction
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

int main() {
  dist::Default strategy;
  Net net{strategy};
#ifdef CONTROL
  nn::Optimizer optimizer{strategy, net, nn::SGD{.learning_rate = 0.1F}};
#else
  nn::Optimizer optimizer{strategy, net, 0.1F};
#endif
  strategy.run([&](auto& replica) { optimizer.apply_gradients(replica); });
}
