// expect: a model needs a strategy as its first argument
#include <dist/nn.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/model.hpp>

namespace nn = dist::nn;

using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

int main() {
  dist::Default strategy;
  Net net{strategy};
#ifdef CONTROL
  nn::Model model{strategy, net, nn::SGD{}, nn::SparseCategoricalCrossentropy{}};
#else
  nn::Model model{net, strategy, nn::SGD{}, nn::SparseCategoricalCrossentropy{}};
#endif
  model.optimizer().set_learning_rate(0.1F);
}
