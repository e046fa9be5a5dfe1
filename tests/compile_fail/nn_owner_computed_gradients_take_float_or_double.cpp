// expect: nn::OwnerComputedGradients computes with float and double
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/strategy/mirrored.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Element = double;
#else
using Element = long double;
#endif

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<4>>, nn::Reference, Element, nn::OwnerComputedGradients<1>> net{
      strategy};
}
