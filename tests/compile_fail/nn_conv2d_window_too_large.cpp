// expect: nn::Conv2D's window is larger than its input image
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4, 5, 1>, nn::Conv2D<8, 4>>;
#else
using Net = nn::Sequential<nn::Input<4, 5, 1>, nn::Conv2D<8, 5>>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
