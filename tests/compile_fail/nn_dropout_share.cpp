// expect: nn::Dropout drops a fraction below 1
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/dropout.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Layer = nn::Dropout<99>;
#else
using Layer = nn::Dropout<100>;
#endif

using Net = nn::Sequential<nn::Input<4>, Layer, nn::Dense<2>>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
