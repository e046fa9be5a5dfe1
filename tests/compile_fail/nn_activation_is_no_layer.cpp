// expect: nn::Softmax and nn::ReLU are layers: put them after the layer
#include <dist/nn.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

int main() {
#ifdef CONTROL
  using Hidden = nn::Dense<8, nn::Relu>;
#else
  using Hidden = nn::Dense<8, nn::ReLU>;
#endif
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<4>, Hidden>> net{strategy};
}
