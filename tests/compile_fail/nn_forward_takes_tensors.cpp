// expect: forward takes a dist::Tensor or dist::TensorView of the network's element type
#include <vector>

#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>> net{strategy};
#ifdef CONTROL
  const dist::Tensor<float> x{dist::Shape{1, 4}};
#else
  const std::vector<float> x(4);
#endif
  return strategy.run([&](auto& replica) { return net.forward(replica, x).values.size(); }) == 2 ? 0 : 1;
}
