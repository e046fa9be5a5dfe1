// expect: a network needs a strategy as its first argument
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

using Net = nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>>;

int main() {
  dist::Default strategy;
#ifdef CONTROL
  Net net{strategy, 42};
#else
  Net net{42};
#endif
  return net.parameters().size() > 0 ? 0 : 1;
}
