// expect: nn::Concatenate joins outputs along the last axis, but the outputs of its branches differ
#include <dist/nn/layers/concatenate.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Other = nn::Conv2D<2, 3, nn::Linear, 1, nn::Same>;
#else
using Other = nn::Conv2D<2, 3>;
#endif

using Net = nn::Sequential<nn::Input<8, 8, 2>, nn::Concatenate<nn::Conv2D<4, 1>, Other>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
