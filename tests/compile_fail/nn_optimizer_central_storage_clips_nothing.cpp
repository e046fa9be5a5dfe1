// expect: gradients cannot be clipped under a strategy that keeps one copy of each variable
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/strategy/central_storage.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Option = nn::WeightDecay;
#else
using Option = nn::ClipNorm;
#endif

int main() {
  dist::CentralStorage<dist::Cpu> strategy{2};
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::With{nn::SGD{}, Option{1.0f}}};
}
