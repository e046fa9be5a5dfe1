// expect: a hook of a callback takes the arguments listed at nn::hooks, or the model followed by these
#include <dist/data.hpp>
#include <dist/nn.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/model.hpp>

namespace nn = dist::nn;
using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

struct Watching {
#ifdef CONTROL
  void on_test_end(std::size_t, const nn::Logs&) {}
#else
  void on_test_end(const nn::Logs&) {}
#endif
};

int main() {
  dist::Default strategy;
  Net net{strategy};
  nn::Model model{strategy, net, nn::SGD{}, nn::SparseCategoricalCrossentropy{}};
  auto batches =
      dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{8, 4}}, dist::Tensor<std::int64_t>{dist::Shape{8}}) |
      dist::data::batch(4);
  Watching watching;
  static_cast<void>(model.evaluate(batches, {.verbose = 0}, watching));
}
