// expect: arguments of fit and evaluate after the options must be callbacks, with a hook of nn::Callback
#include <dist/data.hpp>
#include <dist/nn.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/model.hpp>

namespace nn = dist::nn;
using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

struct Watching {
#ifdef CONTROL
  void on_epoch_end(const nn::Epoch&, const nn::Logs&) {}
#else
  void on_epoch_ended(const nn::Epoch&, const nn::Logs&) {}
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
  model.fit(batches, {.epochs = 1, .verbose = 0}, watching);
}
