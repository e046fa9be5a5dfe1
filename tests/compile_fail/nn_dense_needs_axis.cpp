// expect: nn::Dense multiplies along the last axis, and its input is a number without axes
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<>, nn::Reshape<1>, nn::Dense<3>>;
#else
using Net = nn::Sequential<nn::Input<>, nn::Dense<3>>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
