// expect: Model needs a loss of one number
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/model.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Reduction = nn::Reduction::SumOverBatchSize;
#else
using Reduction = nn::Reduction::None;
#endif

int main() {
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>> net{strategy};
  nn::Model model{strategy, net, nn::SGD{}, nn::Reduced{nn::MeanSquaredError{}, Reduction{}}};
  return model.optimizer().learning_rate() > 0 ? 0 : 1;
}
