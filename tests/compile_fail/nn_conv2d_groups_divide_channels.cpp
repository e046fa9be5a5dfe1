// expect: nn::Conv2D divides the channels of its input into groups of equal size
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
constexpr std::size_t channels = 4;
#else
constexpr std::size_t channels = 3;
#endif

using Layer = nn::Conv2D<4, 3, nn::Linear, 1, nn::Valid, nn::GlorotUniform, nn::Zeros, 2>;
using Net = nn::Sequential<nn::Input<5, 5, channels>, Layer>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
