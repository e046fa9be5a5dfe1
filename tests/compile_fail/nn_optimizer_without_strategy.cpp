// expect: an optimizer needs a strategy as its first argument
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
  nn::Optimizer optimizer{strategy, net, nn::SGD{}};
#else
  nn::Optimizer optimizer{net, nn::SGD{}};
#endif
}
