// expect: nn::Input must be first in an nn::Sequential
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4>, nn::Flatten>;
#else
using Net = nn::Sequential<nn::Input<4>, nn::Input<4>>;
#endif

int main() { return Net::layer_count == 1 ? 0 : 1; }
