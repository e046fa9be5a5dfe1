// expect: a callback has a member on_batch_end, which is never called: the hook is on_train_batch_end
#include <dist/data.hpp>
#include <dist/nn.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/model.hpp>

namespace nn = dist::nn;
using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

struct Watching {
  void on_epoch_end(const nn::Epoch&, const nn::Logs&) {}
#ifdef CONTROL
  void on_train_batch_end(std::size_t, nn::CurrentLogs) {}
#else
  void on_batch_end(std::size_t, nn::CurrentLogs) {}
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
