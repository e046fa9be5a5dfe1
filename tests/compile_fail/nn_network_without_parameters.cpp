// expect: a network needs a layer with parameters
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/network.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4>, nn::Flatten, nn::Dense<2>>;
#else
using Net = nn::Sequential<nn::Input<4>, nn::Flatten>;
#endif

int main() {
  dist::Default strategy;
  nn::Network<Net> net{strategy};
}
