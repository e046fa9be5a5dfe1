// expect: nn::UpSampling2D takes rows [height, width, channels], but its input has a different number of axes
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/up_sampling2d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4, 4, 2>, nn::Dense<3>, nn::UpSampling2D<2>>;
#else
using Net = nn::Sequential<nn::Input<4, 2>, nn::Dense<3>, nn::UpSampling2D<2>>;
#endif

int main() { return Net::parameter_count > 0 ? 0 : 1; }
