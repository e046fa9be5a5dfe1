// expect: the elements of a model's dataset must have features x and targets y
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
  nn::Model model{strategy, net, nn::SGD{}, nn::SparseCategoricalCrossentropy{}};
  const dist::Tensor<float> x{dist::Shape{8, 4}};
#ifdef CONTROL
  const auto rows = dist::data::tensor_slices(x, dist::Tensor<std::int64_t>{dist::Shape{8}});
#else
  const auto rows = dist::data::tensor_slices(x);
#endif
  model.fit(rows | dist::data::batch(4), {.verbose = 0});
}
