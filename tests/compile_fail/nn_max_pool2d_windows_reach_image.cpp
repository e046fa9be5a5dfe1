// expect: a pooling layer, such as nn::MaxPool2D, has a window entirely outside its input: use less padding
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Padding = nn::Pad<1>;
#else
using Padding = nn::Pad<2>;
#endif

using Net = nn::Sequential<nn::Input<4, 4, 1>, nn::MaxPool2D<2, 2, Padding>, nn::Flatten, nn::Dense<2>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
