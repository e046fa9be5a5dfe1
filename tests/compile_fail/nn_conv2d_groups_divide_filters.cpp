// expect: nn::Conv2D divides its filters into groups of equal size
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
constexpr std::size_t filters = 4;
#else
constexpr std::size_t filters = 3;
#endif

using Layer = nn::Conv2D<filters, 3, nn::Linear, 1, nn::Valid, nn::GlorotUniform, nn::Zeros, 2>;
using Net = nn::Sequential<nn::Input<5, 5, 4>, Layer>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
