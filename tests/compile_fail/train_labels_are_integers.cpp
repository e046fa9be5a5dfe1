// expect: takes integer labels, the number of the class of each example
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
  nn::Model model{strategy, net, nn::SGD{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};
#ifdef CONTROL
  const dist::Tensor<std::int64_t> y{dist::Shape{8}};
#else
  const dist::Tensor<float> y{dist::Shape{8}};
#endif
  model.fit(dist::Tensor<float>{dist::Shape{8, 4}}, y, {.verbose = 0});
}
