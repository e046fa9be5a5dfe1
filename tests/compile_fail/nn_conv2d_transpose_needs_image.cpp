// expect: nn::Conv2DTranspose takes rows [height, width, channels], but its input has a different number of axes
#include <dist/nn/layers/conv2d_transpose.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4, 4, 2>, nn::Conv2DTranspose<2, 3>>;
#else
using Net = nn::Sequential<nn::Input<4, 2>, nn::Conv2DTranspose<2, 3>>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
