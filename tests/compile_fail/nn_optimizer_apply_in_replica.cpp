// expect: apply_gradients must be called in a replica function
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::SGD{}};
#ifdef CONTROL
  strategy.run([&](auto& replica) { optimizer.apply_gradients(replica); });
#else
  optimizer.apply_gradients(strategy.scope());
#endif
}
