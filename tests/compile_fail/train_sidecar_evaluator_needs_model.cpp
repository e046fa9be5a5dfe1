// expect: the first argument of a side-car evaluator must be the nn::Model to evaluate
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/strategy/default.hpp>
#include <dist/train/sidecar_evaluator.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>> net{strategy};
#ifdef CONTROL
  nn::Model model{strategy, net, nn::SGD{}, nn::MeanSquaredError{}};
  nn::SidecarEvaluator evaluator{model, "checkpoints"};
#else
  nn::SidecarEvaluator evaluator{net, "checkpoints"};
#endif
  return evaluator.evaluated().empty() ? 0 : 1;
}
