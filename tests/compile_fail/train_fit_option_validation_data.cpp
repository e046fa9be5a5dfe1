// expect: fit has no option validation_data: it is FitOptions.validation, a dataset
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
  const dist::Tensor<std::int64_t> y{dist::Shape{8}};
#ifdef CONTROL
  model.fit(x, y, {.validation = dist::data::tensor_slices(x, y) | dist::data::batch(4)});
#else
  model.fit(x, y, {.validation_data = dist::data::tensor_slices(x, y) | dist::data::batch(4)});
#endif
}
