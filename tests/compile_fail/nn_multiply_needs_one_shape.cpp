// expect: nn::Multiply needs branches whose outputs have the same shape
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/multiply.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Layer = nn::Multiply<nn::Dense<4>, nn::Sequential<>>;
#else
using Layer = nn::Multiply<nn::Dense<3>, nn::Sequential<>>;
#endif

using Net = nn::Sequential<nn::Input<4>, Layer>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
