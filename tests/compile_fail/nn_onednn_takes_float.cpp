// expect: this back end does not support this element type: nn::OneDnn and nn::Cuda support float
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/strategy/default.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Element = float;
#else
using Element = double;
#endif

int main() {
  dist::Default strategy;
  nn::Network<nn::Sequential<nn::Input<4>, nn::Dense<2>>, nn::OneDnn, Element> net{strategy};
}
