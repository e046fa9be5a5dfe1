// expect: nn::Add needs branches whose outputs have the same shape
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Shortcut = nn::Conv2D<4, 1, nn::Linear, 2>;
#else
using Shortcut = nn::Sequential<>;
#endif

using Body = nn::Conv2D<4, 3, nn::Linear, 2, nn::Same>;
using Net = nn::Sequential<nn::Input<8, 8, 2>, nn::Residual<Body, Shortcut>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
