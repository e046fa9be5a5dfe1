// expect: the window of a pooling layer, such as nn::MaxPool2D, is larger than its input
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4, 5, 1>, nn::MaxPool2D<4>>;
#else
using Net = nn::Sequential<nn::Input<4, 5, 1>, nn::MaxPool2D<5>>;
#endif

int main() { return Net::layer_count == 1 ? 0 : 1; }
