// expect: an argument of nn::Sequential is not a layer: a layer has a member template On<In>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4>, nn::Dense<3>, nn::Activate<nn::Relu>>;
#else
using Net = nn::Sequential<nn::Input<4>, nn::Dense<3>, nn::Relu>;
#endif

int main() { return Net::parameter_count == 15 ? 0 : 1; }
