// expect: the input of this network is ids, which have no gradient
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4, 2>, nn::Flatten, nn::Dense<3>>;
#else
using Net = nn::Sequential<nn::Input<4, 1>, nn::Reshape<4>, nn::Embedding<10, 2>, nn::Flatten, nn::Dense<3>>;
#endif

int main() {
  dist::Default strategy;
  nn::Network<Net> net{strategy};
  const dist::Tensor<float> x{Net::InputShape::shape().stacked(1)}, slopes{dist::Shape{1, 3}};
  strategy.run([&](auto& replica) {
    static_cast<void>(net.forward(replica, x));
    static_cast<void>(net.backward(replica, slopes, nn::only_input_gradient));
  });
}
