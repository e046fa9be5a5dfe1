// expect: forward must be called in a replica function: use strategy.run
#include <dist/dist.hpp>
#include <dist/nn.hpp>

namespace nn = dist::nn;

int main() {
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<2>, nn::Dense<1>>> net{strategy};
  const dist::Tensor<float> x{{1, 2}};
#ifndef CONTROL
  const auto outputs = net.forward(strategy.scope(), x);
#else
  strategy.run([&](auto& replica) { static_cast<void>(net.forward(replica, x)); });
#endif
}
