// expect: nn::Conv2DTranspose takes the padding nn::Valid or nn::Same
#include <dist/nn/layers/conv2d_transpose.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4, 4, 2>, nn::Conv2DTranspose<2, 3, nn::Linear, 2, nn::Same>>;
#else
using Net = nn::Sequential<nn::Input<4, 4, 2>, nn::Conv2DTranspose<2, 3, nn::Linear, 2, nn::Pad<1>>>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
