// expect: train_and_evaluate takes an nn::Model, a dataset to train on, one to evaluate on, and options
#include <dist/data/batch.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/train_and_evaluate.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>> net{strategy};
  const dist::Tensor<float> x{{8, 4}}, y{{8, 2}};
  const auto rows = dist::data::tensor_slices(x, y) | dist::data::batch(4);
#ifdef CONTROL
  nn::Model model{strategy, net, nn::SGD{}, nn::MeanSquaredError{}};
#else
  auto& model = net;
#endif
  nn::train_and_evaluate(model, rows, rows, {.folder = "checkpoints"});
}
