// expect: the input of this network is ids, which have no gradient
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

using Projection = nn::Sequential<nn::Dense<8>, nn::Reshape<4, 2>>;
#ifdef CONTROL
using Words = Projection;
#else
using Words = nn::Named<"words", nn::Embedding<10, 2>>;
#endif

int main() {
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<4>, nn::Add<Projection, Words>>> net{strategy};
  const dist::Tensor<float> x{dist::Shape{1, 4}}, slopes{dist::Shape{1, 4, 2}};
  strategy.run([&](auto& replica) {
    static_cast<void>(net.forward(replica, x));
    static_cast<void>(net.backward(replica, slopes, nn::input_gradient));
  });
}
