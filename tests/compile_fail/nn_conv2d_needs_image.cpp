// expect: nn::Conv2D takes rows [height, width, channels], but its input has a different number of axes
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<8, 3>>;
#else
using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Flatten, nn::Conv2D<8, 3>>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
