// expect: a loss is a metric of a model inside nn::MeanOf: nn::MeanOf{nn::MeanAbsoluteError{}}
#include <dist/data.hpp>
#include <dist/nn.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/model.hpp>

namespace nn = dist::nn;
using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

int main() {
  dist::Default strategy;
  Net net{strategy};
#ifdef CONTROL
  nn::Model model{strategy, net, nn::SGD{}, nn::MeanSquaredError{}, nn::MeanOf{nn::MeanAbsoluteError{}}};
#else
  nn::Model model{strategy, net, nn::SGD{}, nn::MeanSquaredError{}, nn::MeanAbsoluteError{}};
#endif
}
