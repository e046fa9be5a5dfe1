// expect: the function given to torch_module must return a module holder of libtorch or a std::shared_ptr to a module
#include <dist/torch/module.hpp>

#include <memory>

#include <torch/nn/modules/linear.h>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
#ifdef CONTROL
  auto net = dist::torch_module(strategy, [] { return std::make_shared<torch::nn::LinearImpl>(3, 2); });
#else
  auto net = dist::torch_module(strategy, [] { return torch::nn::LinearImpl{3, 2}; });
#endif
}
