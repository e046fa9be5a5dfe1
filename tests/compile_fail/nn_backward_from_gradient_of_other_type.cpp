// expect: backward starts from a loss, or from a dist::Tensor or dist::TensorView of the network's element type
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Element = float;
#else
using Element = double;
#endif

int main() {
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>> net{strategy};
  const dist::Tensor<float> x{dist::Shape{1, 4}};
  const dist::Tensor<Element> slopes{dist::Shape{1, 2}};
  strategy.run([&](auto& replica) {
    static_cast<void>(net.forward(replica, x));
    net.backward(replica, slopes);
  });
}
