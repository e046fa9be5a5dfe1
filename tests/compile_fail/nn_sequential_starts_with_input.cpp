// expect: nn::Sequential must start with nn::Input<...>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Net = nn::Sequential<nn::Input<4>, nn::Dense<3>>;
#else
using Net = nn::Sequential<nn::Dense<3>, nn::Dense<3>>;
#endif

int main() { return Net::layer_count < 5 ? 0 : 1; }
