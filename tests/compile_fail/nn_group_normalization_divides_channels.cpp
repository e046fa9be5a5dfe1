// expect: nn::GroupNormalization divides the channels of its input into groups of equal size
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Layer = nn::GroupNormalization<3>;
#else
using Layer = nn::GroupNormalization<4>;
#endif

using Net = nn::Sequential<nn::Input<2, 2, 6>, Layer>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
