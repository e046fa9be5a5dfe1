// expect: the type of this optimizer names a different network than its argument
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;
using Small = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;
using Large = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<8>>>;

int main() {
  dist::Default strategy;
#ifdef CONTROL
  Small net{strategy};
#else
  Large net{strategy};
#endif
  nn::Optimizer<dist::Default, Small, nn::SGD> optimizer{strategy, net, nn::SGD{}};
  return optimizer.learning_rate() > 0 ? 0 : 1;
}
