// expect: two layers of this network have the same name
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/sequential.hpp>

namespace nn = dist::nn;

#ifdef CONTROL
using Second = nn::Named<"second", nn::Dense<4>>;
#else
using Second = nn::Named<"first", nn::Dense<4>>;
#endif

using Net = nn::Sequential<nn::Input<4>, nn::Named<"first", nn::Dense<4>>, Second>;

int main() { return Net::parameter_count > 0 ? 0 : 1; }
