// expect: nn::Named needs a name of at least one character
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Layer = nn::Named<"first", nn::Dense<4>>;
#else
using Layer = nn::Named<"", nn::Dense<4>>;
#endif

using Net = nn::Sequential<nn::Input<4>, Layer>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
