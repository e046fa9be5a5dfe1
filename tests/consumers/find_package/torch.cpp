#include <dist/torch/module.hpp>

#include <torch/nn/modules/linear.h>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  const auto net = dist::torch_module(strategy, [] { return torch::nn::Linear{3, 2}; });
  return net.layout()[0].shape == dist::Shape{2, 3} ? 0 : 1;
}
